//! The flags of `silvics completions` and `silvics man`.

use clap::Args;

#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// bash, elvish, fish, powershell or zsh
    #[arg(value_name = "SHELL")]
    pub shell: String,
}

#[derive(Args, Debug)]
pub struct ManArgs {
    /// The folder that takes the pages, such as ~/.local/share/man/man1
    #[arg(value_name = "FOLDER")]
    pub folder: std::path::PathBuf,
}
