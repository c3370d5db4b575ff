package jsonrpc

// What things count, and how much may be. The package documentation states the same
// numbers to users, under Bounds.
//
// Counted towards MaxQueued and MaxQueuedHard:
//
//	what                                     how much
//	a message with its decoded values        chargeMessage and twice its frame
//	a notification kept as text              chargeText and its params
//	a request handler that waits in a call   chargeYielded
//
// Of the rest, this is bounded:
//
//	what                                     bound
//	read, and not yet given to the lanes     stageMax frames, stageMaxBytes
//	the beginning of an oversize frame       keptHead
//	output not yet written                   highWater
//	… cancellations, answers of handlers     bypassWater more
//	… answers of the reader itself           MaxQueued more
const (
	// chargeMessage is what a message counts in addition to twice its frame:
	// decoded values take more room than their text, and an entry has a cost of
	// its own.
	chargeMessage = 512
	// chargeText is what a notification that is kept as text counts in addition
	// to it: its entry.
	chargeText = 160
	// chargeYielded is about what the goroutine of a waiting handler takes.
	chargeYielded = 8 << 10

	// keepText is how many queued bytes make notifications be kept as text and
	// decoded again when it is their turn. Params beyond keepTextMax are not.
	keepText    = 4 << 20
	keepTextMax = 16 << 10

	stageMax      = 256
	stageMaxBytes = 64 << 10
	keptHead      = 64 << 10

	// highWater is one pipe-full: more only evicts the CPU's cache. The frame
	// that crosses it is taken whole.
	highWater = 64 << 10
	// bypassWater lets answers go before new calls.
	bypassWater = 1 << 20
)

// chargeOf returns what a message whose frame has n bytes counts.
func chargeOf(n int) int { return chargeMessage + 2*n }
