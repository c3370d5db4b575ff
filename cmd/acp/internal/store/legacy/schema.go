package legacy

import (
	"context"
	"database/sql"
	"fmt"
)

// applicationID marks the file as a store: "acpS".
const applicationID = 0x61637053

// migrations are the steps from one version of the file to the next. They are never changed
// once released; user_version is how many of them a file has seen.
var migrations = []string{
	// 1: sessions and their events.
	`
CREATE TABLE session (
	id       INTEGER PRIMARY KEY,
	agent    TEXT    NOT NULL,
	sid      TEXT    NOT NULL,
	command  TEXT    NOT NULL DEFAULT '', -- a JSON list, or nothing
	cwd      TEXT    NOT NULL DEFAULT '',
	title    TEXT    NOT NULL DEFAULT '',
	protocol INTEGER NOT NULL DEFAULT 0,
	created  INTEGER NOT NULL, -- nanoseconds since 1970, as all times
	updated  INTEGER NOT NULL,
	turns    INTEGER NOT NULL DEFAULT 0,
	events   INTEGER NOT NULL DEFAULT 0, -- how many are kept
	seq      INTEGER NOT NULL DEFAULT 0, -- number of the last event
	first    INTEGER NOT NULL DEFAULT 1, -- number of the first event that counts
	reset    INTEGER NOT NULL DEFAULT 0, -- replayed events before this one count
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
`,
	// 2: the text of messages, for search.
	`
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
`,
	// 3: sessions of subagents, which are part of another session.
	`
CREATE TABLE child (
	session INTEGER PRIMARY KEY REFERENCES session (id) ON DELETE CASCADE,
	parent  INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE
);
CREATE INDEX child_parent ON child (parent);
CREATE TRIGGER session_delete BEFORE DELETE ON session BEGIN
	DELETE FROM session WHERE id IN (SELECT session FROM child WHERE parent = old.id);
END;
`,
	// 4: words that are taken out of the index are out of the file as well.
	`
INSERT INTO message_text (message_text, rank) VALUES ('secure-delete', 1);
`,
}

// migrate brings the file to the latest version, all steps in one transaction. Another process
// may be doing the same.
func migrate(ctx context.Context, db *sql.DB) error {
	var version int
	if err := db.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version); err != nil {
		return err
	}
	if version == len(migrations) {
		return nil
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := tx.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version); err != nil {
		return err
	}
	if version > len(migrations) {
		return fmt.Errorf("format %d, and this one knows up to %d: %w", version, len(migrations), ErrNewer)
	}
	for i := version; i < len(migrations); i++ {
		if _, err := tx.ExecContext(ctx, migrations[i]); err != nil {
			return fmt.Errorf("bring the store to format %d: %w", i+1, err)
		}
	}
	// Pragmas take no parameters.
	set := fmt.Sprintf(`PRAGMA application_id = %d; PRAGMA user_version = %d`, applicationID, len(migrations))
	if _, err := tx.ExecContext(ctx, set); err != nil {
		return err
	}
	return tx.Commit()
}
