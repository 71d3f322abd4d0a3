//! A target that is no server: an adapter or a client, which connects to the harness itself.

use super::{Launch, Pending, Running, Start};
use crate::drivers::DriveError;

/// Starts nothing.
#[derive(Clone, Copy, Debug)]
pub struct NoServer;

const WHY: &str = "the target is no server";

impl Launch for NoServer {
    fn start<'a>(&'a self, _: &'a Start) -> Pending<'a, Result<Box<dyn Running>, DriveError>> {
        Box::pin(async {
            Err(DriveError::NotPossible {
                what: "to start it".to_owned(),
                why: WHY.to_owned(),
            })
        })
    }

    fn offers(&self, _: &str) -> Result<(), String> {
        Err(WHY.to_owned())
    }

    fn restarts(&self) -> Result<(), String> {
        Err(WHY.to_owned())
    }
}
