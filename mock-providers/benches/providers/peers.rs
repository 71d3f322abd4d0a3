//! The servers: our own, llmposter, and aimock.
//!
//! All say [`TEXT`] in pieces of [`PIECE`] characters without any delay, and keep their last thousand requests,
//! as is the default of each.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use turnwire_mock::{Chunking, MockConfig, Reply, Rule, ServeOptions};

/// What every server says: six hundred characters, so thirty pieces.
pub(crate) const TEXT: &str = "The rain has stopped, and somebody knocks at the door. It is the neighbour \
from the third floor, who has lost a key again and asks for the spare one. She says that the stairs are \
wet, that the light in the hall has gone out, and that the cat of the old gentleman sits on the roof and \
will not come down for anybody. We look for a ladder, find one behind the shed, and carry it through the \
yard. The cat watches us with great calm. When the ladder stands at last, it yawns, stretches itself, and \
walks down the drainpipe without any help. The neighbour laughs, takes the key and goes home to sleep.";

/// Characters of a piece.
const PIECE: usize = 20;

/// A server that can be started.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    /// The command for a port and a folder for its script; the text of `Err` says what to install.
    command: fn(u16, &Path) -> Result<Command, String>,
}

/// Our own server first.
pub(crate) const PEERS: &[Peer] = &[
    Peer {
        name: "turnwire",
        version: env!("CARGO_PKG_VERSION"),
        command: own,
    },
    Peer {
        name: "llmposter",
        version: "0.5.0",
        command: llmposter,
    },
    Peer {
        name: "aimock",
        version: "1.43.0",
        command: aimock,
    },
];

fn own(port: u16, _: &Path) -> Result<Command, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args(["--serve", &port.to_string()]);
    Ok(command)
}

fn llmposter(port: u16, folder: &Path) -> Result<Command, String> {
    let program = std::env::var("LLMPOSTER").unwrap_or_else(|_| "llmposter".to_owned());
    let found = Command::new(&program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if found.is_err() {
        return Err(
            "`cargo install llmposter@0.5.0 --locked --no-default-features`, \
                    or name the program in the variable LLMPOSTER"
                .to_owned(),
        );
    }
    let script = folder.join("llmposter.yaml");
    let text = format!(
        "fixtures:\n  - match: {{user_message: benchmark}}\n    response: {{content: {TEXT:?}}}\n    \
         streaming: {{latency: 0, chunk_size: {PIECE}}}\n"
    );
    std::fs::write(&script, text).map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command
        .arg("--fixtures")
        .arg(script)
        .args(["--port", &port.to_string()]);
    Ok(command)
}

fn aimock(port: u16, folder: &Path) -> Result<Command, String> {
    let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers");
    let program = peers.join("node_modules/@copilotkit/aimock/dist/cli.js");
    if !program.exists() {
        return Err(format!("`npm ci` in {}", peers.display()));
    }
    let script = folder.join("aimock.json");
    let fixtures = serde_json::json!({ "fixtures": [{
        "match": { "userMessage": "benchmark" }, "response": { "content": TEXT } }] });
    std::fs::write(&script, fixtures.to_string()).map_err(|error| error.to_string())?;
    let mut command = Command::new("node");
    command
        .arg(program)
        .arg("--fixtures")
        .arg(script)
        .args(["--port", &port.to_string(), "--latency", "0"])
        .args(["--chunk-size", &PIECE.to_string(), "--log-level", "silent"]);
    Ok(command)
}

/// Serves our own mock until the process is killed.
pub(crate) fn serve(port: u16) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let options = ServeOptions {
            listen: (Ipv4Addr::LOCALHOST, port).into(),
            config: MockConfig::default(),
        };
        let server = turnwire_mock::serve(options).await.unwrap();
        server.load(Rule::on("benchmark").reply(Reply::text(TEXT).chunk(Chunking::Chars(PIECE))));
        std::future::pending::<()>().await;
    });
}

/// A server that runs. Dropping it kills it.
pub(crate) struct Running {
    pub(crate) peer: &'static Peer,
    pub(crate) address: SocketAddr,
    child: Child,
    folder: PathBuf,
}

impl Peer {
    /// Starts it on a free port and waits until it takes connections.
    pub(crate) fn start(&'static self) -> Result<Running, String> {
        let words = |error: std::io::Error| error.to_string();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(words)?;
        let address = listener.local_addr().map_err(words)?;
        drop(listener);
        let folder = std::env::temp_dir().join(format!("turnwire-bench-{}", address.port()));
        std::fs::create_dir_all(&folder).map_err(words)?;
        let mut command = (self.command)(address.port(), &folder)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(words)?;
        let mut running = Running {
            peer: self,
            address,
            child,
            folder,
        };
        running.wait_ready()?;
        Ok(running)
    }
}

impl Running {
    fn wait_ready(&mut self) -> Result<(), String> {
        let until = Instant::now() + Duration::from_secs(20);
        while Instant::now() < until {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("it ended ({status})"));
            }
            if TcpStream::connect(self.address).is_ok() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Err("it takes no connection".to_owned())
    }

    /// Resident memory in bytes; 0 where the system does not tell.
    pub(crate) fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let kilobytes = status.ok().and_then(|status| {
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix("VmRSS:"))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        });
        kilobytes.unwrap_or_default() << 10
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
