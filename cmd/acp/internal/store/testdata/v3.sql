-- A store of format 3.
PRAGMA application_id = 1633906771;
PRAGMA user_version = 3;
CREATE TABLE session (
	id       INTEGER PRIMARY KEY,
	agent    TEXT    NOT NULL,
	sid      TEXT    NOT NULL,
	command  TEXT    NOT NULL DEFAULT '',
	cwd      TEXT    NOT NULL DEFAULT '',
	title    TEXT    NOT NULL DEFAULT '',
	protocol INTEGER NOT NULL DEFAULT 0,
	created  INTEGER NOT NULL,
	updated  INTEGER NOT NULL,
	turns    INTEGER NOT NULL DEFAULT 0,
	events   INTEGER NOT NULL DEFAULT 0,
	seq      INTEGER NOT NULL DEFAULT 0,
	first    INTEGER NOT NULL DEFAULT 1,
	reset    INTEGER NOT NULL DEFAULT 0,
	UNIQUE (agent, sid)
);
CREATE INDEX session_updated ON session (updated);
CREATE TABLE event (
	id      INTEGER PRIMARY KEY,
	session INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE,
	seq     INTEGER NOT NULL,
	time    INTEGER NOT NULL,
	kind    TEXT    NOT NULL,
	data    BLOB    NOT NULL,
	UNIQUE (session, seq)
);
INSERT INTO session VALUES (1, 'gemini', 's1', '["gemini","--acp"]', '/p', 'An old title', 1, 1700000000000000000, 1700000001000000000, 1, 2, 2, 1, 0);
INSERT INTO event VALUES (1, 1, 1, 1700000000000000000, 'update', CAST('{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"an old answer"}}' AS BLOB));
INSERT INTO event VALUES (2, 1, 2, 1700000001000000000, 'turn', CAST('{"stopReason":"end_turn"}' AS BLOB));
ALTER TABLE session ADD COLUMN indexed INTEGER NOT NULL DEFAULT 0; -- number of the last event that was looked at
CREATE TABLE message (
	id      INTEGER PRIMARY KEY,
	session INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE,
	role    TEXT    NOT NULL, -- user, agent or title
	mid     TEXT    NOT NULL,
	text    TEXT    NOT NULL,
	UNIQUE (session, role, mid)
);
CREATE VIRTUAL TABLE message_text USING fts5 (
	text, content='message', content_rowid='id', tokenize='unicode61 remove_diacritics 2'
);
CREATE TRIGGER message_insert AFTER INSERT ON message BEGIN
	INSERT INTO message_text (rowid, text) VALUES (new.id, new.text);
END;
CREATE TRIGGER message_delete AFTER DELETE ON message BEGIN
	INSERT INTO message_text (message_text, rowid, text) VALUES ('delete', old.id, old.text);
END;
CREATE TRIGGER message_update AFTER UPDATE OF text ON message BEGIN
	INSERT INTO message_text (message_text, rowid, text) VALUES ('delete', old.id, old.text);
	INSERT INTO message_text (rowid, text) VALUES (new.id, new.text);
END;
INSERT INTO message (session, role, mid, text) SELECT id, 'title', '', title FROM session WHERE title <> '';
CREATE TABLE child (
	session INTEGER PRIMARY KEY REFERENCES session (id) ON DELETE CASCADE,
	parent  INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE
);
CREATE INDEX child_parent ON child (parent);
CREATE TRIGGER session_delete BEFORE DELETE ON session BEGIN
	DELETE FROM session WHERE id IN (SELECT session FROM child WHERE parent = old.id);
END;
