//! Somebody else's clients read what `turnwire serve` sends: the npm packages `eventsource` and
//! `eventsource-parser`, in `tests/interop`.

mod served;

use std::{path::Path, process::Command};

use served::serve;

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
