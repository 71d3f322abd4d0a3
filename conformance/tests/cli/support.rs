//! Running the real program.

use std::{
    path::Path,
    process::{Command, Output, Stdio},
};

use tempfile::TempDir;

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A place of its own for a command: its folder, and its state.
pub(crate) struct Place {
    pub(crate) folder: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_turnwire"));
        command
            .args(args)
            .current_dir(self.path())
            .env("XDG_STATE_HOME", self.path().join("state"))
            .env_remove("TURNWIRE_LLM_BASE_URL")
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ended {
        let Output {
            status,
            stdout,
            stderr,
        } = self.command(args).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ended {
            code: status.code(),
            stdout: text(stdout),
            stderr: text(stderr),
        }
    }
}

pub(crate) fn turnwire(args: &[&str]) -> Ended {
    Place::new().run(args)
}

/// The command failed with this code and one line on standard error, which is given back.
#[track_caller]
pub(crate) fn fails(args: &[&str], code: i32) -> String {
    let ended = turnwire(args);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(code), ""),
        "{args:?}: {}",
        ended.stderr
    );
    let line = ended
        .stderr
        .strip_suffix('\n')
        .unwrap_or(&ended.stderr)
        .to_owned();
    assert!(!line.contains('\n'), "more than one line: {line}");
    line
}
