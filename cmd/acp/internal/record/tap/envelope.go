package tap

import (
	"strings"
	"unicode"

	"github.com/goacp/acp/internal/wire"
)

// maxID bounds the ids that are echoed, in bytes.
const maxID = 4 << 10

// An envelope is what the guard reads of a frame. Its slices are parts of the frame.
type envelope struct {
	id     []byte // as it is spelled; nil without one, or if it is not valid
	method string // "" if it calls nothing
	params []byte
	result []byte
	failed bool // it has an error
	longID bool // its id is too long to be echoed
	frame  []byte

	// fault returns why a frame must not pass: it could be read in two ways, or not at all.
	fault string
}

// The names of members that decide what a frame means.
var (
	envelopeNames = []string{"jsonrpc", "id", "method", "params", "result", "error"}
	fileNames     = []string{"sessionId", "path", "line", "limit", "content"}
	terminalNames = []string{"sessionId", "command", "args", "env", "cwd", "outputByteLimit"}
)

// parse reads a frame that is an object.
func parse(frame []byte) (e envelope) {
	fault := members(frame, envelopeNames, func(name string, d *wire.Decoder) {
		switch name {
		case "id":
			if kind := d.Peek(); kind == '{' || kind == '[' || kind == 't' || kind == 'f' {
				d.Mismatch("is no id")
				return
			}
			e.id = d.Raw()
			if len(e.id) > maxID {
				e.id, e.longID = nil, true
			}
		case "method":
			e.method = d.Str()
			if e.method == "" {
				d.Invalid(d.Pos(), "is empty")
			}
		case "params":
			e.params = d.Raw()
		case "result":
			e.result = d.Raw()
		case "error":
			e.failed = true
			d.Skip()
		default:
			d.Skip()
		}
	})
	e.fault, e.frame = fault, frame
	return e
}

// members calls read with the members of an object that have one of the names, in order. It returns
// what is wrong with the object, or "": a member occurs twice, or in a spelling that readers which
// ignore case may accept, or read found a fault.
func members(object []byte, names []string, read func(name string, d *wire.Decoder)) (fault string) {
	d := new(wire.Decoder)
	d.Reset(object, false)
	if d.Peek() != '{' {
		return "it is no object"
	}
	seen := uint64(0)
	for key, ok := d.FirstKey(); ok; key, ok = d.NextKey() {
		i := known(names, key)
		switch {
		case i < 0:
			d.Skip()
		case seen&(1<<i) != 0 || string(key) != names[i]:
			fault = names[i] + " is in it twice, or in another spelling"
			d.Skip()
		default:
			seen |= 1 << i
			read(names[i], d)
		}
	}
	if err := d.Finish(); err != nil && fault == "" {
		fault = err.Error()
	}
	return fault
}

// known returns which of the names a member has, or -1; case is ignored.
func known(names []string, key []byte) int {
	for i, name := range names {
		if string(key) == name || strings.EqualFold(string(key), name) {
			return i
		}
	}
	return -1
}

// isText reports whether a client cannot take any part of a line for a frame: no frame begins at
// its beginning, nor after anything in it that ends a line for some readers, such as a carriage
// return or U+2028. White space, control characters and the like are ignored, since some readers
// trim them.
func isText(line []byte) bool {
	begins := true
	for _, c := range string(line) {
		switch {
		case begins && (c == '{' || c == '['):
			return false
		case c >= '\n' && c <= '\r', c >= '\x1c' && c <= '\x1e', c == '\u0085', c == '\u2028', c == '\u2029':
			begins = true
		case !unicode.In(c, unicode.White_Space, unicode.C) && c != unicode.ReplacementChar:
			begins = false
		}
	}
	return true
}
