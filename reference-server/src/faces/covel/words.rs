//! The engine's words, in the protocol's.

use turnwire_spec::covel::vocabulary as wire;

use crate::engine::model::{ExecutionState, Origin, Phase, SessionStatus};

pub(super) const fn session_status(status: SessionStatus) -> wire::SessionStatus {
    match status {
        SessionStatus::Active => wire::SessionStatus::Active,
        SessionStatus::Paused => wire::SessionStatus::Paused,
        SessionStatus::Ended => wire::SessionStatus::Ended,
    }
}

pub(super) const fn wanted_status(status: wire::SessionStatus) -> SessionStatus {
    match status {
        wire::SessionStatus::Active => SessionStatus::Active,
        wire::SessionStatus::Paused => SessionStatus::Paused,
        wire::SessionStatus::Ended => SessionStatus::Ended,
    }
}

pub(super) const fn phase(phase: Phase) -> wire::SessionPhase {
    match phase {
        Phase::Setup => wire::SessionPhase::Setup,
        Phase::Playing => wire::SessionPhase::Playing,
    }
}

pub(super) const fn execution_state(state: ExecutionState) -> wire::ExecutionState {
    match state {
        ExecutionState::Idle => wire::ExecutionState::Idle,
        ExecutionState::Running => wire::ExecutionState::Running,
        ExecutionState::Completed => wire::ExecutionState::Completed,
        ExecutionState::Failed => wire::ExecutionState::Failed,
        ExecutionState::Interrupted => wire::ExecutionState::Interrupted,
    }
}

pub(super) const fn origin(origin: Origin) -> wire::ExecutionOrigin {
    match origin {
        Origin::Player => wire::ExecutionOrigin::Player,
        Origin::Continuation => wire::ExecutionOrigin::Continuation,
    }
}
