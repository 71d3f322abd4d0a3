//! Requests that turn a connection into something else.

use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;

use super::{Call, Failure, HttpClient, Opened, Reply, reply};
use crate::{
    drivers::{DriveError, causes},
    transcript::{End, ExchangeId, Fact, ResponseHead, record::Recorder},
};

/// What became of an upgrade.
#[derive(Debug)]
pub enum Upgrade {
    /// The target switched protocols: the connection is the caller's, and so is the record of its end.
    Switched(Switched),
    /// It answered in some other way.
    Refused(Reply),
}

/// A connection that speaks another protocol now.
#[derive(Debug)]
pub struct Switched {
    /// Method and target, for people.
    pub request: String,
    /// Exchange of the request.
    pub exchange: ExchangeId,
    /// The head with status 101.
    pub head: ResponseHead,
    /// The connection.
    pub io: TokioIo<Upgraded>,
    /// Where what passes is told.
    pub recorder: Recorder,
}

impl HttpClient {
    /// Sends a request that asks to switch protocols, over a connection of its own.
    ///
    /// # Errors
    ///
    /// As [`HttpClient::send`].
    pub async fn upgrade(&self, call: Call) -> Result<Upgrade, DriveError> {
        let line = call.line();
        let until = tokio::time::Instant::now() + self.inner.limits.total;
        let (exchange, connection, mut response) = self.ask(&call, false).await?;
        if response.status().as_u16() == 101 {
            let head = ResponseHead {
                status: 101,
                headers: reply::headers(response.headers()),
            };
            let recorder = self.inner.recorder.clone();
            recorder.tell(Fact::Response {
                exchange,
                head: head.clone(),
            });
            // The connection's task ends once it has handed the connection over.
            return match hyper::upgrade::on(&mut response).await {
                Ok(upgraded) => Ok(Upgrade::Switched(Switched {
                    request: line,
                    exchange,
                    head,
                    io: TokioIo::new(upgraded),
                    recorder,
                })),
                Err(error) => {
                    let failure = Failure::NoResponse(causes(&error));
                    recorder.tell(Fact::End {
                        exchange,
                        how: failure.end(),
                    });
                    Err(failure.error(line, &self.base()))
                }
            };
        }
        let Opened { head, mut body } = self.opened(exchange, connection, response, None);
        let bytes = body.read_whole(self.inner.limits.idle, until).await;
        Ok(Upgrade::Refused(Reply {
            request: line,
            exchange: body.account().exchange,
            status: head.status,
            headers: head.headers,
            body: bytes,
            end: body.account().ended().unwrap_or(End::ClosedByHarness),
        }))
    }
}
