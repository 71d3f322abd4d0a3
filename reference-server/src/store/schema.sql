-- The tables of one store file, version 3. Documents are the model types as JSON.

CREATE TABLE sessions (
    id                     TEXT PRIMARY KEY,
    incarnation            TEXT NOT NULL,
    world_id               TEXT,
    created_at             INTEGER NOT NULL, -- Unix milliseconds
    completed_player_turns INTEGER NOT NULL, -- counts here, not in the document
    doc                    TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE messages (
    ordinal    INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    id         TEXT NOT NULL UNIQUE,
    turn_id    TEXT, -- counts here, not in the document; NULL until a turn commits the message
    doc        TEXT NOT NULL
) STRICT;
CREATE INDEX messages_of_session ON messages (session_id, ordinal);

CREATE TABLE plugin_data (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    plugin_id  TEXT NOT NULL,
    namespace  TEXT NOT NULL,
    key        TEXT NOT NULL,
    doc        TEXT NOT NULL,
    PRIMARY KEY (session_id, plugin_id, namespace, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE traces (
    ordinal    INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    doc        TEXT NOT NULL
) STRICT;
CREATE INDEX traces_of_session ON traces (session_id, ordinal);

CREATE TABLE executions (
    ordinal    INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    turn_id    TEXT NOT NULL,
    doc        TEXT NOT NULL,
    UNIQUE (session_id, turn_id)
) STRICT;
CREATE INDEX executions_of_session ON executions (session_id, ordinal);

CREATE TABLE tool_calls (
    ordinal    INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    turn_id    TEXT NOT NULL,
    nth        INTEGER NOT NULL, -- place among the calls of the turn
    doc        TEXT NOT NULL,
    UNIQUE (session_id, turn_id, nth)
) STRICT;
CREATE INDEX tool_calls_of_session ON tool_calls (session_id, ordinal);

CREATE TABLE ledger (
    session_id      TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    logical_turn_id TEXT NOT NULL,
    PRIMARY KEY (session_id, logical_turn_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE jobs (
    session_id  TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    id          TEXT NOT NULL,
    sequence    INTEGER NOT NULL,
    terminal    INTEGER NOT NULL,
    enqueued_at INTEGER NOT NULL, -- Unix milliseconds
    doc         TEXT NOT NULL,
    PRIMARY KEY (session_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX open_jobs ON jobs (enqueued_at, id) WHERE NOT terminal;

-- Suspensions, snapshots, characters: whole documents, read by shelf.
CREATE TABLE records (
    ordinal    INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    shelf      TEXT NOT NULL,
    id         TEXT NOT NULL,
    doc        TEXT NOT NULL,
    UNIQUE (session_id, shelf, id)
) STRICT;
CREATE INDEX records_of_session ON records (session_id, shelf, ordinal);

PRAGMA user_version = 3;
