//! `turnwire serve` for tests with somebody else's clients.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
};

/// A server that dies with the test.
pub(crate) struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts `turnwire serve` on a free port; gives its URL, without a slash at its end.
pub(crate) fn serve() -> (Served, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_turnwire"))
        .args(["serve", "--port", "0", "--store", "memory"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("turnwire serve starts");
    let stdout = child.stdout.take().expect("its output is piped");
    let mut line = String::new();
    BufReader::new(stdout)
        .read_line(&mut line)
        .expect("it prints its URL");
    (Served(child), line.trim().trim_end_matches('/').to_owned())
}
