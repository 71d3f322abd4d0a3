//! Somebody else's clients read what `turnwire serve` sends: the npm packages `eventsource` and
//! `eventsource-parser`, in `tests/interop`.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

/// A server that dies with the test.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts `turnwire serve` on a free port; gives its URL.
fn serve() -> (Served, String) {
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
    (Served(child), line.trim().to_owned())
}

#[test]
fn a_node_client_follows_a_turn_and_loses_and_resumes_the_subscription() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop");
    assert!(
        folder.join("node_modules/eventsource").exists(),
        "the npm packages are missing: run `cargo xtask test`, or `npm ci` in {}",
        folder.display()
    );
    let (_served, url) = serve();
    let output = Command::new("node")
        .args(["follow.mjs", &url])
        .current_dir(&folder)
        .output()
        .expect("node runs; `cargo xtask test` installs it");
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{out}{err}");
    assert!(
        out.contains("committed") && out.contains("nothing missed, nothing twice"),
        "{out}"
    );
}
