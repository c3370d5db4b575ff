// Package acpstore keeps an agent's sessions in a directory, so that they survive the
// agent: clients list them, resume them with or without their history, and delete them.
//
//	store, err := acpstore.Keep(agent, dir)
//	if err != nil {
//		return err
//	}
//	defer store.Close()
//
// Each session is a file of JSON lines: what the session is, and then every update that
// is part of the conversation, in the words of protocol version 2. Lines are only ever
// added. A line that a crash has left unfinished is cut off when the session is resumed.
// The file is synchronized with the disk at each prompt, at each change of a tool call
// and at the end of each turn, so that a machine that fails loses at most the text of a
// turn under way. Titles are kept in files of their own.
//
// A session appears in the store with its first prompt. Prompts and answers are stored
// as they are: files are readable only by their owner.
package acpstore
