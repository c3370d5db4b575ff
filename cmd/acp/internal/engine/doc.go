// Package engine is the durable log of a gateway that hosts coding agents: sessions and their
// records, and who owns a session.
//
// An [Engine] has rows of sessions, which a [Database] keeps, and their records in journals: see package journal. [New] makes one
// of a database that several nodes share, in which the records are, too, and [Files] one of files of this machine, of whose
// records the rows are made. Packages engine/postgres and engine/sqlite open them:
//
//	e, err := sqlite.Open(ctx, dir, "acp serve", engine.Options{})
//	lease, err := e.Lease(ctx, "node-1") // one for a process; go lease.Keep(ctx)
//	own, err := e.Claim(ctx, "session-1", lease)
//	recs, err := own.Append(ctx, engine.Record{Kind: journal.KindUpdate, Data: update})
//	for r, err := range e.Follow(ctx, "session-1", 0) { … }
//
// What holds:
//
//   - Append returns once its records are kept. What it returned without an error stays, or its loss is
//     noticed: each record carries a hash over the one before it, every read verifies the chain, and
//     the end of each session is kept in a second place, the [Witness].
//   - A session has one owner. Each claim fences the owner before it, whose appends fail with [ErrFenced].
//   - Damage costs the records that are damaged, and is reported. All others can be read, and the session continued.
//   - Followers see a record once it is kept, without a gap and without a duplicate.
package engine
