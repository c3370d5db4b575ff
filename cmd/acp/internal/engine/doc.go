// Package engine is the durable log of a gateway that hosts coding agents: sessions and their
// records, and who owns a session.
//
// [Engine] holds everything that is the same for all databases; a [Database] does the rest. Packages
// engine/sqlite and engine/postgres open an Engine:
//
//	e, err := sqlite.Open(ctx, dir, sqlite.Options{})
//	lease, err := e.Lease(ctx, "node-1") // one for a process; go lease.Keep(ctx)
//	own, err := e.Claim(ctx, "session-1", lease)
//	recs, err := own.Append(ctx, engine.Record{Kind: "frame", Data: frame})
//	for r, err := range e.Follow(ctx, "session-1", 0) { … }
//
// What holds:
//
//   - Append returns after the commit. What it returned without an error stays, or its loss is
//     noticed: each record carries a hash over the one before it, every read verifies the chain, and
//     the end of each session is kept in a second place, the [Witness].
//   - A session has one owner. Each claim takes a new epoch, and an append with an earlier one fails
//     with [ErrFenced].
//   - Damage to one session marks that session. All others continue.
//   - Followers see a record after its commit only, without a gap and without a duplicate.
package engine
