//! What the recording proxy costs: a request and its answer, the first byte of a stream, and one frame of an open
//! stream, against the same without it, in the same run.

use std::{
    convert::Infallible,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use bytes::Bytes;
use criterion::{Criterion, criterion_group, criterion_main};
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use hyper::{
    Request, Response,
    body::{Frame, Incoming},
    client::conn::http1 as client,
    server::conn::http1 as server,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    runtime::Runtime,
    sync::mpsc,
};
use turnwire::{
    drivers::http::BaseUrl,
    recording::{RecordOptions, RecordingProxy},
    transcript::Header,
};

type Body = BoxBody<Bytes, Infallible>;
type Feed = mpsc::UnboundedSender<Result<Frame<Bytes>, Infallible>>;

/// A frame of a stream.
const FRAME: &[u8] = b"event: narrative.delta\ndata: {\"text\":\"word\"}\n\n";

/// Answers `/stream` with a stream that the benchmark feeds, `/one` with a stream of one frame, and everything else
/// with a small JSON.
async fn answer(feeds: Arc<Mutex<Vec<Feed>>>, path: String) -> Result<Response<Body>, Infallible> {
    if path != "/stream" && path != "/one" {
        return Ok(Response::new(
            Full::new(Bytes::from_static(b"{\"ok\":true}")).boxed(),
        ));
    }
    let (feed, mut frames) = mpsc::unbounded_channel();
    if path == "/one" {
        let frame = Frame::data(Bytes::from_static(FRAME));
        feed.send(Ok(frame)).expect("it is open");
        drop(feed);
    } else {
        feeds.lock().expect("no panic").push(feed);
    }
    let stream = futures_util::stream::poll_fn(move |context| frames.poll_recv(context));
    let mut response = Response::new(BodyExt::boxed(StreamBody::new(stream)));
    response.headers_mut().insert(
        "content-type",
        "text/event-stream".parse().expect("a value"),
    );
    Ok(response)
}

async fn serve(feeds: Arc<Mutex<Vec<Feed>>>) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            let feeds = feeds.clone();
            let service = service_fn(move |request: Request<Incoming>| {
                answer(feeds.clone(), request.uri().path().to_owned())
            });
            tokio::spawn(server::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    address
}

async fn connect(address: SocketAddr) -> client::SendRequest<Full<Bytes>> {
    let stream = TcpStream::connect(address).await.expect("a connection");
    stream.set_nodelay(true).expect("a socket");
    let (sender, connection) = client::handshake(TokioIo::new(stream)).await.expect("HTTP");
    tokio::spawn(connection);
    sender
}

fn request(path: &str) -> Request<Full<Bytes>> {
    let request = Request::get(path).header("host", "127.0.0.1");
    request.body(Full::default()).expect("a request")
}

/// Opens this many streams, one after the other; the time from each request to its first frame, all together.
async fn first_bytes(sender: &mut client::SendRequest<Full<Bytes>>, times: u64) -> Duration {
    let mut total = Duration::ZERO;
    for _ in 0..times {
        sender.ready().await.expect("it is open");
        let begun = Instant::now();
        let response = sender.send_request(request("/one")).await;
        let mut body = response.expect("an answer").into_body();
        body.frame().await.expect("a frame").expect("no break");
        total += begun.elapsed();
        body.collect().await.expect("an end");
    }
    total
}

fn ways(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let feeds: Arc<Mutex<Vec<Feed>>> = Arc::default();
    let direct = runtime.block_on(serve(feeds.clone()));
    let proxy = runtime.block_on(async {
        let options = RecordOptions {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            upstream: BaseUrl::parse(&format!("http://{direct}")).expect("a URL"),
            header: Header::default(),
            limit: 256 << 20,
        };
        RecordingProxy::start(options).await.expect("a proxy")
    });
    let recorded: SocketAddr = proxy.url()["http://".len()..].parse().expect("an address");
    for (name, address) in [("direct", direct), ("recorded", recorded)] {
        let mut sender = runtime.block_on(connect(address));
        criterion.bench_function(&format!("request/{name}"), |bencher| {
            bencher.iter(|| {
                runtime.block_on(async {
                    sender.ready().await.expect("it is open");
                    let response = sender.send_request(request("/")).await.expect("an answer");
                    response.into_body().collect().await.expect("a body")
                })
            });
        });
        let mut sender = runtime.block_on(connect(address));
        criterion.bench_function(&format!("first-byte/{name}"), |bencher| {
            bencher.iter_custom(|times| runtime.block_on(first_bytes(&mut sender, times)));
        });
        let mut sender = runtime.block_on(connect(address));
        let response = runtime.block_on(sender.send_request(request("/stream")));
        let mut body = response.expect("an answer").into_body();
        let feed = feeds.lock().expect("no panic").pop().expect("a stream");
        criterion.bench_function(&format!("frame/{name}"), |bencher| {
            bencher.iter(|| {
                let frame = Frame::data(Bytes::from_static(FRAME));
                feed.send(Ok(frame)).expect("it is open");
                runtime
                    .block_on(body.frame())
                    .expect("a frame")
                    .expect("no break")
            });
        });
    }
}

criterion_group!(benches, ways);
criterion_main!(benches);
