//! A server for clients under test: it takes sockets at any path, and answers what is asked for over HTTP beside
//! them with documents that the scenario gave. Everything is recorded, as the client and we say it.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::JoinSet,
    time::timeout,
};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_util::task::AbortOnDropHandle;

use super::{Habits, WebSocket};
use crate::{
    drivers::{
        DriveError,
        http::{BaseUrl, Switched, reply},
    },
    transcript::{End, ExchangeId, Fact, Request, ResponseHead, Side, record::Recorder},
};

/// Longest body of a request of a client, in bytes.
const MAX_BODY: usize = 1 << 20;

/// Longest wait for a client to take what we write.
const WRITE_WITHIN: Duration = Duration::from_secs(5);

/// The server. It stops when it is dropped.
#[derive(Debug)]
pub struct ChatServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    sockets: tokio::sync::Mutex<mpsc::UnboundedReceiver<WebSocket>>,
    _accepting: AbortOnDropHandle<()>,
}

#[derive(Debug)]
struct Shared {
    recorder: Recorder,
    documents: Mutex<BTreeMap<String, Bytes>>,
    /// So many upgrades are refused.
    refuses: AtomicU32,
    opened: mpsc::UnboundedSender<WebSocket>,
}

impl ChatServer {
    /// Starts on a free port of the loopback device.
    ///
    /// # Errors
    ///
    /// [`DriveError::Harness`] when there is no port.
    pub async fn start(recorder: Recorder) -> Result<Self, DriveError> {
        let harness = |error: std::io::Error| DriveError::Harness(error.to_string());
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(harness)?;
        let address = listener.local_addr().map_err(harness)?;
        let (opened, sockets) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            recorder,
            documents: Mutex::default(),
            refuses: AtomicU32::new(0),
            opened,
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self {
            address,
            shared,
            sockets: tokio::sync::Mutex::new(sockets),
            _accepting: AbortOnDropHandle::new(accepting),
        })
    }

    /// Where it is.
    ///
    /// # Errors
    ///
    /// Never, as long as an address is one.
    pub fn base(&self) -> Result<BaseUrl, DriveError> {
        BaseUrl::parse(&format!("http://{}", self.address))
            .map_err(|error| DriveError::Harness(error.to_string()))
    }

    /// Answers `GET` of this path with a document from now on.
    pub fn document(&self, path: &str, document: &Value) {
        self.document_bytes(path, document.to_string().into());
    }

    /// Answers `GET` of this path with these bytes from now on, as a document.
    pub fn document_bytes(&self, path: &str, document: Bytes) {
        let mut documents = self
            .shared
            .documents
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        documents.insert(path.to_owned(), document);
    }

    /// Refuses the next upgrade with 503.
    pub fn refuse_next(&self) {
        self.shared.refuses.store(1, Ordering::Relaxed);
    }

    /// The next socket that a client opens; `None` when none is opened in time.
    pub async fn socket(&self, within: Duration) -> Option<WebSocket> {
        let mut sockets = self.sockets.lock().await;
        timeout(within, sockets.recv()).await.ok().flatten()
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => {
                connections.spawn(serve(stream, Arc::clone(&shared)));
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let service = service_fn(move |request| {
        let shared = Arc::clone(&shared);
        async move { shared.answer(request).await }
    });
    // How it ended is told by the socket, or nothing was asked.
    let _ = http1::Builder::new()
        .auto_date_header(false)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
}

impl Shared {
    async fn answer(
        self: Arc<Self>,
        mut request: http::Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, http::Error> {
        let exchange = self.recorder.next_exchange();
        let upgrade = request
            .extensions_mut()
            .remove::<hyper::upgrade::OnUpgrade>();
        let (parts, body) = request.into_parts();
        let body = Limited::new(body, MAX_BODY).collect().await;
        let target = parts.uri.path_and_query().map_or("/", |it| it.as_str());
        self.recorder.tell(Fact::Request {
            exchange,
            request: Request {
                method: parts.method.to_string(),
                target: target.to_owned(),
                headers: reply::headers(&parts.headers),
                body: body.map(|body| body.to_bytes()).unwrap_or_default(),
            },
        });
        let key = parts.headers.get(header::SEC_WEBSOCKET_KEY);
        match (key, upgrade) {
            (Some(_), Some(_)) if self.refuses.swap(0, Ordering::Relaxed) > 0 => {
                self.reply(exchange, 503, Bytes::from_static(b"{}"))
            }
            (Some(key), Some(upgrade)) => {
                let accept = derive_accept_key(key.as_bytes());
                self.switch(exchange, &accept, target.to_owned(), upgrade)
            }
            _ => self.document(exchange, parts.uri.path()),
        }
    }

    fn switch(
        self: Arc<Self>,
        exchange: ExchangeId,
        accept: &str,
        target: String,
        upgrade: hyper::upgrade::OnUpgrade,
    ) -> Result<Response<Full<Bytes>>, http::Error> {
        let response = Response::builder()
            .status(StatusCode::SWITCHING_PROTOCOLS)
            .header(header::UPGRADE, "websocket")
            .header(header::CONNECTION, "Upgrade")
            .header(header::SEC_WEBSOCKET_ACCEPT, accept)
            .body(Full::default())?;
        let head = ResponseHead {
            status: 101,
            headers: reply::headers(response.headers()),
        };
        self.recorder.tell(Fact::Response {
            exchange,
            head: head.clone(),
        });
        tokio::spawn(async move {
            let Ok(upgraded) = upgrade.await else {
                return;
            };
            let switched = Switched {
                request: format!("GET {target}"),
                exchange,
                head,
                io: TokioIo::new(upgraded),
                recorder: self.recorder.clone(),
            };
            let socket = WebSocket::start(Side::Server, switched, Habits::default(), WRITE_WITHIN);
            // A scenario that is over takes no socket.
            let _ = self.opened.send(socket);
        });
        Ok(response)
    }

    fn document(
        &self,
        exchange: ExchangeId,
        path: &str,
    ) -> Result<Response<Full<Bytes>>, http::Error> {
        let found = {
            let documents = self
                .documents
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            documents.get(path).cloned()
        };
        match found {
            Some(document) => self.reply(exchange, 200, document),
            None => self.reply(exchange, 404, Bytes::from_static(b"{}")),
        }
    }

    fn reply(
        &self,
        exchange: ExchangeId,
        status: u16,
        body: Bytes,
    ) -> Result<Response<Full<Bytes>>, http::Error> {
        let response = Response::builder()
            .status(status)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body.clone()))?;
        let headers = reply::headers(response.headers());
        self.recorder.tell(Fact::Response {
            exchange,
            head: ResponseHead { status, headers },
        });
        self.recorder.tell(Fact::Chunk {
            exchange,
            bytes: body,
        });
        self.recorder.tell(Fact::End {
            exchange,
            how: End::Complete,
        });
        Ok(response)
    }
}
