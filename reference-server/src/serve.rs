//! A running server: its sockets, its start and its two ways to end.
//!
//! [`Server::start`] puts the parts together and listens; [`Server::shutdown`] ends in order, and
//! [`Server::kill`] as if the process had died.
//!
//! ```text
//!   accept -> [permit] -> connection task -> hyper -> the face's router
//!                              |  |
//!                 graceful end +  + broken off: by its own stream, or because the server is killed
//! ```

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnwire_spec::covel::limits::{BadTimeScale, TimeScale};

use crate::bus::{Bus, BusLimits};
use crate::config::{Config, StoreChoice};
use crate::engine::ids::PluginId;
use crate::engine::plugins::Registry;
use crate::engine::ports::{Publisher, RandomIds, SystemClock};
use crate::engine::sessions::DEFAULT_PLUGINS;
use crate::engine::story::Story;
use crate::engine::{Engine, EngineConfig, EngineError, Parts};
use crate::faces::chat_ws::auth::ChatGuard;
use crate::faces::chat_ws::{self, Chat, Lifeline};
use crate::faces::connection::Connection;
use crate::faces::covel::auth::Guard;
use crate::faces::covel::relay::Relay;
use crate::faces::covel::{Covel, Settings, router};
use crate::faces::doors::Doors;
use crate::faces::session_update::{self, AtEnd, Ends, SessionUpdate};
use crate::faces::writer::WriteLimits;
use crate::fixtures::concealed::Concealed;
use crate::fixtures::faults::{Faults, FaultyPublisher, FaultyStore};
use crate::fixtures::notes::Notes;
use crate::fixtures::segments::SegmentedStory;
use crate::fixtures::{self, Fixtures, cast};
use crate::gateway::{BadClient, Client, ClientConfig, Gateway, RetryPolicy};
use crate::store::memory::MemoryStore;
use crate::store::sqlite::SqliteStore;
use crate::store::{Store, StoreError};

/// Bytes of the head of a request; a longer one is answered with 431.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Headers of a request; more are answered with 431.
const MAX_HEADERS: usize = 100;
/// Longest time that the head of a request may take to arrive, in real time.
const HEAD_WITHIN: Duration = Duration::from_secs(30);
/// How long accepting pauses after the system refused a socket.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Longest time that running turns may take to stop.
const ENGINE_WITHIN: Duration = Duration::from_secs(10);
/// What connections get beyond their own write, drain and close limits at a shutdown.
const SLACK: Duration = Duration::from_secs(1);

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// The session-update face asks for no token, so it listens on loopback addresses only.
    #[error("{0} is no loopback address; session-update has no access control")]
    NotLoopback(SocketAddr),
    /// The time scale is out of its range.
    #[error(transparent)]
    TimeScale(#[from] BadTimeScale),
    /// The base URL of the models makes no sense.
    #[error(transparent)]
    Llm(#[from] BadClient),
    /// The store cannot be opened.
    #[error("cannot open the store: {0}")]
    Store(#[from] StoreError),
    /// What a former process left cannot be taken up.
    #[error("cannot take up what was left: {0}")]
    Resume(#[from] EngineError),
}

/// A running server. It is killed when it is dropped.
pub struct Server {
    addr: SocketAddr,
    lines_addr: Option<SocketAddr>,
    session_update: Arc<SessionUpdate>,
    engine: Engine,
    store: Arc<dyn Store>,
    bus: Bus,
    limits: WriteLimits,
    signals: Signals,
    tasks: TaskTracker,
}

/// How far the end of a server has come.
#[derive(Clone, Debug, Default)]
struct Signals {
    /// Nothing new is begun.
    stopping: CancellationToken,
    /// Connections end once they have answered what they are at.
    draining: CancellationToken,
    /// Connections end where they stand.
    killed: CancellationToken,
}

impl Server {
    /// Starts a server and returns once it listens.
    ///
    /// # Errors
    ///
    /// [`StartError`] when the configuration makes no sense, the store cannot be opened, or the
    /// address is taken.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let gateway = Client::new(ClientConfig {
            // The engine tries again by its own policy.
            retry: RetryPolicy::NEVER,
            ..ClientConfig::new(config.llm.target())
        })?;
        Self::start_with(config, Arc::new(gateway)).await
    }

    /// As [`Server::start`], with another way to reach models; `config.llm` is not used.
    ///
    /// # Errors
    ///
    /// As [`Server::start`].
    pub async fn start_with(config: Config, gateway: Arc<dyn Gateway>) -> Result<Self, StartError> {
        let scale = TimeScale::new(config.time_scale)?;
        let (listener, addr) = bind(config.bind).await?;
        let lines = match config.session_update {
            Some(address) if !address.ip().is_loopback() => {
                return Err(StartError::NotLoopback(address));
            }
            Some(address) => Some(bind(address).await?),
            None => None,
        };
        let signals = Signals::default();
        let tasks = TaskTracker::new();
        let life = Lifeline {
            stopping: signals.stopping.clone(),
            killed: signals.killed.clone(),
            tasks: tasks.clone(),
        };
        let app = App::build(&config, scale, gateway, life).await?;
        app.engine.resume().await?;

        let acceptor = Acceptor {
            listener,
            permits: Arc::new(Semaphore::new(config.max_connections.max(1))),
            router: app.router,
            signals: signals.clone(),
            tasks: tasks.clone(),
        };
        tasks.spawn(acceptor.run());
        let lines_addr = lines.as_ref().map(|(_, addr)| *addr);
        if let Some((listener, _)) = lines {
            let lines = LinesAcceptor {
                listener,
                permits: Arc::new(Semaphore::new(config.max_connections.max(1))),
                face: Arc::clone(&app.session_update),
                signals: signals.clone(),
                tasks: tasks.clone(),
            };
            tasks.spawn(lines.run());
        }
        Ok(Self {
            addr,
            lines_addr,
            session_update: app.session_update,
            engine: app.engine,
            store: app.store,
            bus: app.bus,
            limits: WriteLimits::at(scale),
            signals,
            tasks,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Where the session-update face listens, when it does.
    #[must_use]
    pub fn session_update_addr(&self) -> Option<SocketAddr> {
        self.lines_addr
    }

    /// Serves the session-update protocol to one client over these, until either ends: for stdin and stdout. Turns
    /// that the client began are stopped at the end of its input.
    pub async fn serve_session_update<R, W>(&self, input: R, output: W)
    where
        R: tokio::io::AsyncRead + Unpin + Send,
        W: tokio::io::AsyncWrite + Unpin + Send,
    {
        let face = Arc::clone(&self.session_update);
        session_update::serve(face, input, output, AtEnd::Stop, self.signals.ends()).await;
    }

    /// Its base URL, without a slash at the end.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Ends in order: takes nothing new, stops running turns, closes every stream in good order, and
    /// breaks off what is still open after the limits of the protocol. May be called again.
    pub async fn shutdown(&self) {
        self.signals.stopping.cancel();
        if timeout(ENGINE_WITHIN, self.engine.shutdown())
            .await
            .is_err()
        {
            tracing::warn!("turns were still running at the end of a shutdown");
            self.engine.kill().await;
        }
        self.bus.close();
        self.signals.draining.cancel();
        self.tasks.close();
        let within = self.limits.write + self.limits.drain + self.limits.close + SLACK;
        if timeout(within, self.tasks.wait()).await.is_err() {
            tracing::warn!("connections were still open at the end of a shutdown");
        }
        self.signals.killed.cancel();
        self.tasks.wait().await;
        self.store.close().await;
    }

    /// Ends as if the process had died: nothing that waits is written, every socket is dropped, and
    /// the store keeps what was committed.
    pub async fn kill(&self) {
        self.signals.kill();
        self.engine.kill().await;
        self.tasks.close();
        self.tasks.wait().await;
        self.store.close().await;
    }
}

impl Signals {
    fn ends(&self) -> Ends {
        Ends {
            draining: self.draining.clone(),
            killed: self.killed.clone(),
        }
    }

    fn kill(&self) {
        self.killed.cancel();
        self.stopping.cancel();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.signals.kill();
        self.bus.close();
    }
}

/// The parts of a server above its sockets.
struct App {
    engine: Engine,
    store: Arc<dyn Store>,
    bus: Bus,
    router: Router,
    session_update: Arc<SessionUpdate>,
}

impl App {
    async fn build(
        config: &Config,
        scale: TimeScale,
        gateway: Arc<dyn Gateway>,
        life: Lifeline,
    ) -> Result<Self, StartError> {
        let stopping = life.stopping.clone();
        let ids = Arc::new(RandomIds);
        let bus = Bus::new(BusLimits::at(scale), ids.clone());
        let relay = Arc::new(Relay::new(ids.clone()));
        let mut store = open(&config.store).await?;
        let mut publisher: Arc<dyn Publisher> = Arc::new(bus.clone());
        let mut registry = Registry::new().with(Arc::new(Story::new()));
        if config.fixtures {
            let faults = Arc::new(Faults::new());
            let (cast, opening) = cast::plugins();
            store = Arc::new(FaultyStore::new(store, Arc::clone(&faults)));
            publisher = Arc::new(FaultyPublisher::new(publisher, Arc::clone(&faults)));
            registry = registry
                .with(Arc::new(Fixtures::new(faults, Arc::clone(&relay))))
                .with(Arc::new(Notes::new()))
                .with(Arc::new(Concealed::new()))
                .with(Arc::new(SegmentedStory::new()))
                .with(Arc::new(cast))
                .with(Arc::new(opening));
        }
        let engine = Engine::new(Parts {
            store: Arc::clone(&store),
            publisher,
            gateway,
            registry,
            ids,
            clock: Arc::new(SystemClock),
            config: EngineConfig {
                production: config.production,
                surface_killed_tasks: config.chat.surface_killed_tasks,
                ..EngineConfig::scaled(scale)
            },
        });
        let guard = Guard {
            tier: config.tier,
            production: config.production,
            store: store.kind(),
            operator_token: config.operator_token.clone(),
        };
        let (hosts, origins) = (config.hosts.clone(), config.origins.clone());
        let doors = Doors::new(config.bind, hosts, origins);
        let settings = Settings {
            debug_emit: config.debug_emit,
            rate_limits: config.rate_limits,
            doors: doors.clone(),
            storage: match config.store {
                StoreChoice::Memory => "memory",
                StoreChoice::Sqlite(_) => "sqlite",
            },
        };
        let face = Covel::new(
            engine.clone(),
            bus.clone(),
            relay,
            guard,
            scale,
            settings,
            stopping,
        );
        let chat = Chat::new(
            engine.clone(),
            &bus,
            ChatGuard {
                token: config.chat.token.clone(),
                doors,
            },
            chat_settings(config),
            scale,
            life,
        );
        let mut plugins: Vec<PluginId> = DEFAULT_PLUGINS.iter().map(|id| (*id).into()).collect();
        plugins.extend(config.fixtures.then(|| PluginId::from(fixtures::PLUGIN)));
        Ok(Self {
            session_update: SessionUpdate::new(engine.clone(), bus.clone(), scale, plugins),
            engine,
            store,
            bus,
            router: router(Arc::new(face)).merge(chat_ws::router(chat)),
        })
    }
}

fn chat_settings(config: &Config) -> chat_ws::Settings {
    let mut plugins: Vec<String> = DEFAULT_PLUGINS.iter().map(|id| (*id).to_owned()).collect();
    plugins.extend(config.fixtures.then(|| fixtures::PLUGIN.to_owned()));
    chat_ws::Settings {
        projects: config.chat.projects.clone(),
        plugins,
        context_limits: config.chat.context_limits.clone(),
        kept_frames: config.chat.kept_frames.max(1),
        max_sockets: config.max_connections.max(1),
    }
}

async fn open(choice: &StoreChoice) -> Result<Arc<dyn Store>, StoreError> {
    Ok(match choice {
        StoreChoice::Memory => Arc::new(MemoryStore::new()),
        StoreChoice::Sqlite(path) => Arc::new(SqliteStore::open(path).await?),
    })
}

async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let listener = TcpListener::bind(address).await;
    let bound = listener.and_then(|listener| listener.local_addr().map(|addr| (listener, addr)));
    bound.map_err(|source| StartError::Bind { address, source })
}

/// Takes connections of the session-update face in.
struct LinesAcceptor {
    listener: TcpListener,
    permits: Arc<Semaphore>,
    face: Arc<SessionUpdate>,
    signals: Signals,
    tasks: TaskTracker,
}

impl LinesAcceptor {
    async fn run(self) {
        let stopping = self.signals.stopping.clone();
        stopping.run_until_cancelled(self.accept_all()).await;
    }

    async fn accept_all(&self) {
        loop {
            let Ok(permit) = Arc::clone(&self.permits).acquire_owned().await else {
                return;
            };
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let (face, ends) = (Arc::clone(&self.face), self.signals.ends());
                    self.tasks.spawn(async move {
                        if let Err(error) = stream.set_nodelay(true) {
                            tracing::debug!(%error, "a connection keeps its delay");
                        }
                        let (input, output) = stream.into_split();
                        session_update::serve(face, input, output, AtEnd::Leave, ends).await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

/// Takes connections in.
struct Acceptor {
    listener: TcpListener,
    permits: Arc<Semaphore>,
    router: Router,
    signals: Signals,
    tasks: TaskTracker,
}

impl Acceptor {
    async fn run(self) {
        let stopping = self.signals.stopping.clone();
        stopping.run_until_cancelled(self.accept_all()).await;
    }

    async fn accept_all(&self) {
        let service = TowerToHyperService::new(self.router.clone());
        loop {
            let Ok(permit) = Arc::clone(&self.permits).acquire_owned().await else {
                return;
            };
            match self.listener.accept().await {
                Ok((stream, peer)) => {
                    let signals = self.signals.clone();
                    self.tasks
                        .spawn(serve(stream, peer, service.clone(), signals, permit));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

/// Serves one connection to its end.
async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    service: TowerToHyperService<Router>,
    signals: Signals,
    _permit: OwnedSemaphorePermit,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection keeps its delay");
    }
    let (connection, io) = Connection::watch(stream, peer);
    let handle = connection.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(handle.clone());
        service.call(request)
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(io), service)
        .with_upgrades();
    let mut served = std::pin::pin!(served);
    let mut is_draining = false;
    loop {
        tokio::select! {
            biased;
            () = signals.killed.cancelled() => {
                connection.abort();
                return;
            }
            () = connection.aborted() => return,
            () = signals.draining.cancelled(), if !is_draining => {
                is_draining = true;
                served.as_mut().graceful_shutdown();
            }
            ended = served.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, %peer, "a connection ended early");
                }
                return;
            }
        }
    }
}
