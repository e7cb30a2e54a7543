//! `silvics completions` and `silvics man`: the command, as a shell and as `man` know it. Both are
//! made of the flags themselves, so that they cannot differ from them.

use crate::catalogue;
use crate::catalogue::select::{self, Chosen};
use crate::flags::args::Cli;
use crate::flags::error::Error;
use crate::flags::install::{CompletionsArgs, ManArgs};
use crate::flags::place::{self, Place};
use crate::flags::types::KeyType;
use crate::output::{self, File};
use crate::progress;
use crate::store;
use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory, ValueEnum};
use clap_complete::Shell;
use clap_mangen::Man;
use silvics::{Pages, Tuning};
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
    let mut command = with_values(Cli::command(), &[]);
    clap_complete::generate(shell, &mut command, "silvics", &mut script);
    output::bytes(&script)
}

/// The values that a shell completes for a flag of a verb, as `["store", "ycsb", "run"]`. `None` if
/// they are not of a small set. Lists of values are completed up to the first one.
fn values(verb: &[&str], flag: &str) -> Option<Vec<&'static str>> {
    Some(match (flag, verb) {
        ("color", _) => vec!["auto", "always", "never"],
        ("counting", _) => vec!["striped", "single"],
        ("format", ["advise" | "inspect" | "reproduce" | "watch"]) => vec!["table", "json"],
        ("format", ["store", "ycsb", _]) => vec!["table", "json", "csv", "ycsb"],
        ("format", _) => vec!["table", "json", "csv"],
        ("key_format", _) => vec!["lines", "sosd"],
        ("key_type", ["bench"]) => vec!["u64", "u128", "bytes", "string"],
        ("key_type", _) => KeyType::OF_INDEXES.map(KeyType::name).to_vec(),
        ("keyset", _) => vec!["words", "uuid", "email", "url"],
        ("pages", _) => vec!["4k", "thp", "hugetlb"],
        ("placement", _) => place::names(),
        ("scan_by", _) => vec!["range", "next", "whole"],
        ("index", _) => indexes(verb),
        _ => return None,
    })
}

/// A command whose flags name their values. Commands that read flags do not: wrong values have
/// errors of their own, and lists are read item by item.
fn with_values(command: Command, verb: &[&str]) -> Command {
    let command = command.mut_args(|arg| match values(verb, arg.get_id().as_str()) {
        Some(values) => valued(arg, values),
        None => arg,
    });
    command.mut_subcommands(|of| {
        let name = of.get_name().to_owned();
        with_values(of, &[verb, &[&name]].concat())
    })
}

fn valued(arg: Arg, values: Vec<&'static str>) -> Arg {
    let defaults = Vec::<clap::builder::OsStr>::new(); // a default need not be one of the values
    arg.value_parser(PossibleValuesParser::new(values)).default_values(defaults)
}

/// The names of indexes, and of groups of them, that a verb takes.
fn indexes(verb: &[&str]) -> Vec<&'static str> {
    let names = |takes: &dyn Fn(&Chosen) -> bool| {
        let all = catalogue::all().iter().map(|entry| &*entry.name);
        let is_taken = |name: &&str| select::resolve(name, None).is_ok_and(|of| takes(&of[0]));
        all.filter(is_taken).collect::<Vec<_>>()
    };
    let of_any_type =
        |takes: &dyn Fn(KeyType) -> bool| KeyType::OF_INDEXES.iter().any(|&of| takes(of));
    let place = Place::Pooled(Pages::default(), Tuning::default());
    match verb {
        ["inspect"] => names(&|chosen| of_any_type(&|of| chosen.inspects(of))),
        ["watch"] => names(&|chosen| chosen.variant.adapts()),
        ["verify"] => {
            let groups = ["all", "ours", "bst", "peers", "memtable"];
            let has_histories = |chosen: &Chosen| {
                of_any_type(&|of| chosen.entry.takes(of) && chosen.verify(place, of).is_some())
            };
            [&groups[..], &names(&has_histories)].concat()
        }
        ["store", ..] => store::indexes(),
        _ => {
            let groups = ["default", "ours", "bst", "peers", "all"];
            [&groups[..], &names(&|_| true)].concat()
        }
    }
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
    // A name with a slash is that of a file, wherever `man` looks for pages.
    let first = args.folder.join("silvics.1");
    progress::note(&format!(
        "{} pages are in `{folder}`: read `man {}`, or `man silvics` if MANPATH leads there",
        files.len(),
        first.display()
    ));
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
