//! Server processes on the loopback interface, which end with the program that starts them.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use redis::{Client, Connection, ConnectionLike, RedisError, RedisResult};

/// The reason for which a program of this folder ends without success.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The arguments or the server are wrong. The sentence says what to do.
    Setup(String),
    /// The result is not the required one.
    Verdict(String),
    /// The run could not be completed.
    Run(String),
}

impl Failure {
    /// The exit code of the program.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Verdict(_) => 1,
            Self::Setup(_) => 2,
            Self::Run(_) => 3,
        }
    }
}

/// The main function of a program of this folder: reads the arguments, which are `None` if they ask
/// for help, and runs with them.
pub(crate) fn main<A>(
    name: &str,
    help: &str,
    read: impl FnOnce(std::iter::Skip<std::env::Args>) -> Result<Option<A>, Failure>,
    run: impl FnOnce(&A) -> Result<(), Failure>,
) -> ExitCode {
    let result = match read(std::env::args().skip(1)) {
        Ok(None) => {
            println!("{help}");
            return ExitCode::SUCCESS;
        }
        Ok(Some(args)) => run(&args),
        Err(failure) => Err(failure),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{name}: {failure}");
            ExitCode::from(failure.code())
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Setup(sentence) | Self::Verdict(sentence) | Self::Run(sentence)) = self;
        f.write_str(sentence)
    }
}

impl From<RedisError> for Failure {
    fn from(error: RedisError) -> Self {
        Self::Run(format!("a command failed: {error}"))
    }
}

/// How servers are started.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    /// The program: a name to search in `PATH`, or a path.
    pub(crate) server: String,
    /// The module to load.
    pub(crate) module: Option<PathBuf>,
    /// Arguments of the module.
    pub(crate) module_arguments: Vec<String>,
}

impl Launch {
    /// Starts a server in `folder` that listens on `port`, with `settings` such as
    /// `["--maxmemory", "1gb"]`. It returns when the server answers.
    pub(crate) fn start(
        &self,
        folder: &Path,
        port: u16,
        settings: &[String],
    ) -> Result<Server, Failure> {
        let setup = |what: &Path, error: io::Error| {
            Failure::Setup(format!(
                "{} cannot be written: {error}; set TMPDIR to a folder with space",
                what.display()
            ))
        };
        fs::create_dir_all(folder).map_err(|error| setup(folder, error))?;
        let log = folder.join("log");
        let file = File::options().append(true).create(true).open(&log);
        let file = file.map_err(|error| setup(&log, error))?;

        let mut command = Command::new(&self.server);
        command.arg("--port").arg(port.to_string()).args(["--bind", "127.0.0.1"]);
        command.args(["--save", "", "--appendonly", "no", "--protected-mode", "no"]);
        command.arg("--dir").arg(folder).args(settings);
        if let Some(module) = &self.module {
            command.arg("--loadmodule").arg(module).args(&self.module_arguments);
        }
        command.stdin(Stdio::null()).stderr(Stdio::null()).stdout(file);
        let child = command.spawn().map_err(|error| {
            Failure::Setup(format!(
                "the server `{}` does not start: {error}; install it, or name another one by \
                 --server PATH",
                self.server
            ))
        })?;
        let mut server = Server { child, port };
        server.wait_until_it_answers(&log)?;
        Ok(server)
    }
}

/// A running server. Dropping it kills the process.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
}

impl Server {
    /// A new connection to this server.
    pub(crate) fn connect(&self) -> RedisResult<Connection> {
        connect(self.port)
    }

    /// Kills the process as `kill -9` does, and waits for its end.
    pub(crate) fn kill(&mut self) {
        // Both fail only if the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Whether the process has ended. A process that has ended stays as a zombie until it is waited
    /// for.
    pub(crate) fn has_ended(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()));
        stat.is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z")))
    }

    /// Stops the process (SIGSTOP) until [`resume`](Self::resume).
    pub(crate) fn pause(&self) -> Result<(), Failure> {
        self.signal("-STOP")
    }

    /// Lets a paused process go on.
    pub(crate) fn resume(&self) -> Result<(), Failure> {
        self.signal("-CONT")
    }

    fn signal(&self, signal: &str) -> Result<(), Failure> {
        let status = Command::new("kill").arg(signal).arg(self.child.id().to_string()).status();
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(Failure::Run(format!("`kill {signal}` failed: {status}"))),
            Err(error) => Err(Failure::Run(format!("`kill {signal}` does not start: {error}"))),
        }
    }

    fn wait_until_it_answers(&mut self, log: &Path) -> Result<(), Failure> {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            if self.connect().is_ok_and(|mut connection| connection.check_connection()) {
                return Ok(());
            }
            let ended = self.has_ended();
            if ended || Instant::now() > deadline {
                let log = fs::read_to_string(log).unwrap_or_default();
                let lines: Vec<&str> = log.lines().collect();
                let end = lines[lines.len().saturating_sub(12)..].join("\n");
                let why = if ended { "it ended" } else { "it does not answer" };
                return Err(Failure::Setup(format!(
                    "a server could not be started: {why}. Its log ends with:\n{end}"
                )));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A new connection to a server on the loopback interface.
pub(crate) fn connect(port: u16) -> RedisResult<Connection> {
    let client = Client::open(("127.0.0.1", port))?;
    let connection = client.get_connection_with_timeout(Duration::from_millis(500))?;
    // Long enough that a server which is only slow does not leave a command behind that it would
    // run later. The connection to a killed server ends at once.
    connection.set_read_timeout(Some(Duration::from_secs(60)))?;
    connection.set_write_timeout(Some(Duration::from_secs(60)))?;
    Ok(connection)
}

/// Free ports of the loopback interface.
///
/// They are below the range from which the system takes ports for outgoing connections, so that no
/// connection takes the port of a server while it is down.
pub(crate) fn free_ports(count: usize) -> Result<Vec<u16>, Failure> {
    const PORTS: u16 = 12_000;
    let start = (std::process::id() % u32::from(PORTS)) as u16;
    let ports: Vec<u16> = (0..PORTS)
        .map(|step| 20_000 + (start + step) % PORTS)
        .filter(|&port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok())
        .take(count)
        .collect();
    if ports.len() == count {
        Ok(ports)
    } else {
        Err(Failure::Setup("too few ports of 127.0.0.1 from 20000 on are free".to_owned()))
    }
}
