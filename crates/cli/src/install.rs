//! `silvics completions` and `silvics man`: the command, as a shell and as `man` know it. Both are
//! made of the flags themselves, so that they cannot differ from them.

use crate::catalogue;
use crate::flags::args::Cli;
use crate::flags::error::Error;
use crate::flags::install::{CompletionsArgs, ManArgs};
use crate::output::{self, File};
use crate::progress;
use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory, ValueEnum};
use clap_complete::Shell;
use clap_mangen::Man;
use std::fmt::Write as _;
use std::path::Path;

/// Prints the completions of a shell.
pub fn completions(args: &CompletionsArgs) -> Result<(), Error> {
    let text = &args.shell;
    let shell = Shell::from_str(text, false).map_err(|_| {
        let all: Vec<String> = Shell::value_variants().iter().map(ToString::to_string).collect();
        let problem = format!("`{text}` is not a shell: choose {}", all.join(", "));
        Error::value("completions", problem)
    })?;
    let mut script = Vec::new();
    let mut command = with_values(Cli::command());
    clap_complete::generate(shell, &mut command, "silvics", &mut script);
    output::bytes(&script)
}

/// Flags with the values that a shell completes. Lists of values are completed up to the first one.
const VALUES: [(&str, &[&str]); 8] = [
    ("color", &["auto", "always", "never"]),
    ("counting", &["striped", "single"]),
    ("format", &["table", "json", "csv"]),
    ("key_type", &["u64", "u128", "bytes", "string"]),
    ("keyset", &["words", "uuid", "email", "url"]),
    ("pages", &["4k", "thp", "hugetlb"]),
    ("placement", &["pooled", "shared", "size-class"]),
    ("scan_by", &["range", "next", "whole"]),
];

/// A command whose flags name their values. Commands that read flags do not: wrong values have
/// errors of their own, and lists are read item by item.
fn with_values(command: Command) -> Command {
    let command = command.mut_args(|arg| {
        let found = VALUES.iter().find(|(id, _)| arg.get_id() == id);
        match found {
            Some((_, values)) => valued(arg, values.to_vec()),
            None if arg.get_id() == "index" => valued(arg, indexes()),
            None => arg,
        }
    });
    command.mut_subcommands(with_values)
}

fn valued(arg: Arg, values: Vec<&'static str>) -> Arg {
    let defaults = Vec::<clap::builder::OsStr>::new(); // a default need not be one of the values
    arg.value_parser(PossibleValuesParser::new(values)).default_values(defaults)
}

/// The names that `--index` takes: of indexes and of groups.
fn indexes() -> Vec<&'static str> {
    let names = catalogue::all().iter().map(|entry| &*entry.name);
    let groups = ["default", "ours", "bst", "peers", "all"];
    groups.into_iter().chain(names).collect()
}

/// Writes a page for the command and for each of its verbs.
pub fn man(args: &ManArgs) -> Result<(), Error> {
    let mut command = Cli::command();
    command.build();
    let mut files = Vec::new();
    pages(&command, &args.folder, &mut files)?;
    for (file, page) in &files {
        file.write_quietly(page)?;
    }
    let folder = args.folder.display();
    progress::note(&format!("{} pages are in `{folder}`: read `man silvics`", files.len()));
    Ok(())
}

/// Adds the pages of a command and of its subcommands.
fn pages(command: &Command, folder: &Path, files: &mut Vec<(File, Vec<u8>)>) -> Result<(), Error> {
    let man = Man::new(command.clone());
    let file = File::new("man", &folder.join(man.get_filename()))?;
    let mut page = Vec::new();
    man.render(&mut page).map_err(Error::Output)?;
    files.push((file, ascii(&String::from_utf8_lossy(&page)).into_bytes()));
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        pages(verb, folder, files)?;
    }
    Ok(())
}

/// A page with other characters than those of ASCII by their numbers, as every `roff` takes them.
fn ascii(page: &str) -> String {
    let mut text = String::with_capacity(page.len());
    for c in page.chars() {
        if c.is_ascii() {
            text.push(c);
        } else {
            _ = write!(text, "\\[u{:04X}]", u32::from(c));
        }
    }
    text
}
