package engine

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// Bounds of what is kept. Values beyond them are refused with [ErrInvalid].
const (
	// MaxData bounds the data of a record, and of all records of one Append together, in bytes.
	MaxData = 16 << 20
	// MaxRecords bounds how many records one Append may have, and one transaction.
	MaxRecords = 256
	// MaxName bounds ids, nodes and principals, in bytes.
	MaxName = 512
	// MaxText bounds each text attribute of a session, in bytes.
	MaxText = 8 << 10
	// MaxValue bounds a session's Attributes, in bytes.
	MaxValue = 256 << 10
)

// What the log of a session is made of.
type (
	Record = journal.Record
	Kind   = journal.Kind
	Head   = journal.Head
	Gap    = journal.Gap
)

// Times outside of these cannot be stored in nanoseconds.
var minTime, maxTime = time.Unix(0, -1<<63), time.Unix(0, 1<<63-1)

// checkText refuses text that some database would refuse, so that it never fails a batch.
func checkText(what, s string, limit int) error {
	switch {
	case len(s) > limit:
		return fmt.Errorf("%w: %s has %d bytes, at most %d", ErrInvalid, what, len(s), limit)
	case !utf8.ValidString(s) || strings.IndexByte(s, 0) >= 0:
		return fmt.Errorf("%w: %s %q is not text", ErrInvalid, what, s)
	}
	return nil
}

// checkName is checkText for names, which may be required.
func checkName(what, s string, required bool) error {
	if required && s == "" {
		return fmt.Errorf("%w: no %s", ErrInvalid, what)
	}
	return checkText(what, s, MaxName)
}

// checkJSON refuses what is neither empty nor JSON, or too large.
func checkJSON(what string, b []byte) error {
	if len(b) > 0 && !json.Valid(b) {
		return fmt.Errorf("%w: %s is not JSON", ErrInvalid, what)
	}
	if len(b) > MaxValue {
		return fmt.Errorf("%w: %s has %d bytes, at most %d", ErrInvalid, what, len(b), MaxValue)
	}
	return nil
}
