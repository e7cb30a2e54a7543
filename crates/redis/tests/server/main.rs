//! The module in running servers. `check.sh` builds the module and sets the two variables:
//! `SILVICS_MODULE` is the shared object, and `SILVICS_SERVER` the server's program.

mod bad;
mod client;
mod commands;
mod long;
mod snapshots;

#[path = "../../examples/common/server.rs"]
#[allow(dead_code)] // the programs of the examples use the rest
mod server;

use redis::{Connection, Value};
use server::{Failure, Launch, Server, free_ports};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How all servers of these tests are started.
fn launch(arguments: &str) -> Launch {
    let module = std::env::var_os("SILVICS_MODULE").expect("check.sh sets SILVICS_MODULE");
    Launch {
        server: std::env::var("SILVICS_SERVER").unwrap_or("redis-server".into()),
        module: Some(PathBuf::from(module)),
        module_arguments: words(arguments),
    }
}

fn words(line: &str) -> Vec<String> {
    line.split_ascii_whitespace().map(str::to_string).collect()
}

/// Starts a server in a folder. One starts at a time, since another would find its port free until
/// it listens.
fn start_as(launch: &Launch, folder: &Path, settings: &str) -> Result<Server, Failure> {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    launch.start(folder, free_ports(1)?[0], &words(settings))
}

/// Starts a server with arguments of the module.
fn start(folder: &Path, arguments: &str, settings: &str) -> Result<Server, Failure> {
    start_as(&launch(arguments), folder, settings)
}

/// A server in a folder of its own, and a connection to it.
struct Running {
    server: Server,
    connection: Connection,
    folder: TempDir,
}

impl Running {
    /// Starts a server with arguments of the module, and settings of the server.
    fn start(arguments: &str, settings: &str) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), arguments, settings)
    }

    fn start_in(folder: TempDir, arguments: &str, settings: &str) -> Self {
        let settings = format!("--enable-debug-command yes {settings}");
        let server = start(folder.path(), arguments, &settings);
        let server = server.unwrap_or_else(|failure| panic!("{failure}"));
        let connection = server.connect().unwrap();
        Self { server, connection, folder }
    }

    /// Runs a command, whose words have no spaces, and returns its reply as text.
    fn run(&mut self, line: &str) -> String {
        run(&mut self.connection, line)
    }

    /// Runs commands that succeed.
    fn run_all(&mut self, lines: &[&str]) {
        for line in lines {
            let reply = self.run(line);
            assert!(!reply.starts_with('!'), "{line}: {reply}");
        }
    }

    /// A number from `INFO`.
    fn info(&mut self, name: &str) -> u64 {
        let info = self.run("INFO everything");
        let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or_else(|| panic!("{name} is not in INFO")).trim().parse().unwrap()
    }

    /// Waits until a number from `INFO` is as wanted.
    fn wait_for(&mut self, name: &str, wanted: impl Fn(u64) -> bool) {
        let end = Instant::now() + Duration::from_secs(60);
        while !wanted(self.info(name)) {
            assert!(Instant::now() < end, "{name} is {}", self.info(name));
            sleep(Duration::from_millis(20));
        }
    }

    fn log(&self) -> String {
        log(self.folder.path())
    }
}

fn log(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("log")).unwrap()
}

fn run(connection: &mut Connection, line: &str) -> String {
    let mut parts = line.split_ascii_whitespace();
    let mut command = redis::cmd(parts.next().unwrap());
    for part in parts {
        command.arg(part);
    }
    match command.query::<Value>(connection) {
        Ok(value) => text(&value),
        Err(error) => format!("!{} {}", error.code().unwrap_or("?"), error.detail().unwrap_or("")),
    }
}

/// A reply as text: `nil`, a number, a string, or `[a b]`.
fn text(value: &Value) -> String {
    match value {
        Value::Nil => "nil".into(),
        Value::Int(integer) => integer.to_string(),
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::SimpleString(string) => string.clone(),
        Value::Okay => "OK".into(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(text).collect();
            format!("[{}]", items.join(" "))
        }
        Value::ServerError(error) => {
            format!("!{} {}", error.code(), error.details().unwrap_or(""))
        }
        other => format!("{other:?}"),
    }
}

/// Sets many entries of a map: `entry` returns the key and the value with a number.
fn fill(connection: &mut Connection, map: &str, len: u64, entry: impl Fn(u64) -> (String, String)) {
    for start in (0..len).step_by(1000) {
        let mut pipe = redis::pipe();
        for number in start..len.min(start + 1000) {
            let (key, value) = entry(number);
            pipe.cmd("OM.SET").arg(map).arg(key).arg(value).ignore();
        }
        pipe.query::<()>(connection).unwrap();
    }
}
