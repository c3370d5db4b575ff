package acptest

import (
	"sync"

	"github.com/goacp/acp/jsonrpc"
)

const (
	// recordFrames and recordBytes bound what a Recording keeps.
	recordFrames = 100_000
	recordBytes  = 64 << 20
)

// Record returns the stream and a recording of the frames that pass it in both
// directions. A frame is recorded before it is written and after it was read.
func Record(stream jsonrpc.Stream) (jsonrpc.Stream, *Recording) {
	r := &Recording{}
	return jsonrpc.Tap(stream, func(sent bool, frame []byte) { r.add(Recorded{Out: sent, Data: string(frame)}) }), r
}

// A Recording has the frames that passed a stream, in order: at most 100,000 frames and
// 64 MiB. Frames beyond that are only counted. It may be used from any goroutine while it
// grows.
type Recording struct {
	mu     sync.Mutex
	frames []Recorded
	bytes  int
	lost   int
}

// Recorded is one frame of a [Recording].
type Recorded struct {
	Out  bool   // whether it was written to the recorded stream, not read from it
	Data string // as it passed
}

func (r *Recording) add(f Recorded) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.frames) == recordFrames || r.bytes+len(f.Data) > recordBytes {
		r.lost++
		return
	}
	r.frames = append(r.frames, f)
	r.bytes += len(f.Data)
}

// Frames returns what has been recorded so far, and the number of frames that were not
// kept.
func (r *Recording) Frames() (frames []Recorded, lost int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.frames[:len(r.frames):len(r.frames)], r.lost
}

// String returns the transcript: a line for each frame, with the values that
// differ between runs replaced.
//
// A line begins with -> if the client sent the frame and with <- if the agent did. The
// client is the side that sent initialize or, if neither did, the recorded side. The id
// and the method follow, and then the params, or = and the result, or ! and the error:
//
//	-> id1 initialize {"protocolVersion":1,"clientCapabilities":{}}
//	<- id1 initialize = {"protocolVersion":1,"agentCapabilities":{}}
//	-> id2 session/prompt {"sessionId":"sess1","prompt":[]}
//	<- session/update {"sessionId":"sess1","update":{"sessionUpdate":"plan","entries":[]}}
//	<- id2 session/prompt ! -32602 "Invalid params" {"path":"prompt"}
//
// Members are in the order in which they were sent. Equal values are replaced by equal
// names throughout:
//
//	ids of requests                       id1, id2, …
//	ids of sessions, messages, tool       sess1, msg1, call1, term1, ask1, …; the first
//	calls, terminals and elicitations     1,000 of 8 bytes or more within other strings, too
//	requests of MCP over ACP              mcp1, mcp2, …
//	versions of implementations           "VERSION"
//	times                                 "TIME"
//	directories below [os.TempDir]        /tmp1, …
//	the working directory                 /cwd
func (r *Recording) String() string {
	frames, _ := r.Frames()
	return transcript(frames)
}
