//! `silvics-tidy`: checks the repository around it.
//!
//! ```text
//! silvics-tidy             prints the findings of rules over their budgets; exits 1 if any is
//! silvics-tidy PATH…       prints all findings of these files and folders; exits 1 if any
//! silvics-tidy --report    prints the counts alone and exits 0
//! ```

use std::process::ExitCode;

use silvics_tidy::{Config, Report, repository};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            eprintln!("tidy: {message}");
            ExitCode::from(2)
        }
    }
}

/// Whether all is tidy.
fn run(arguments: &[String]) -> Result<bool, String> {
    if let Some(flag) =
        arguments.iter().find(|argument| argument.starts_with('-') && *argument != "--report")
    {
        return Err(format!(
            "no flag is called `{flag}`: there is `--report`, and paths may be named"
        ));
    }
    let reports = arguments.iter().any(|argument| argument == "--report");
    let paths: Vec<&str> = arguments
        .iter()
        .filter(|argument| *argument != "--report")
        .map(|path| path.trim_end_matches('/'))
        .collect();

    let root = repository::root()?;
    let text = std::fs::read_to_string(root.join(Config::PATH))
        .map_err(|error| format!("{} cannot be read: {error}", Config::PATH))?;
    let config = Config::read(&text).map_err(|error| format!("{}: {error}", Config::PATH))?;
    let findings = repository::tree(&root)?.check(&config);

    if !paths.is_empty() {
        let below = |path: &str| {
            paths.iter().any(|folder| {
                path.strip_prefix(folder)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
        };
        let found: Vec<_> = findings.iter().filter(|finding| below(&finding.path)).collect();
        for finding in &found {
            println!("{finding}");
        }
        println!("{} findings", found.len());
        return Ok(reports || found.is_empty());
    }
    let report = Report::new(findings, &config);
    if !reports {
        report.over_budget().for_each(|finding| println!("{finding}"));
    }
    print!("{report}");
    Ok(reports || report.is_within_budgets())
}
