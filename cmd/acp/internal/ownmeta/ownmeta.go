// Package ownmeta has what the parts of this program say to each other in _meta of messages of the protocol.
package ownmeta

import (
	"encoding/json"
	"maps"
)

// Key is the member of _meta that is the program's. The page in the browser has it in web/src/meta.ts.
const Key = "github.com/goacp/acp"

// Method is what the names of the program's own methods and notifications begin with.
const Method = "_" + Key + "/"

// Of returns _meta in which the program says v, or nil if v cannot be encoded.
func Of(v any) json.RawMessage {
	data, err := json.Marshal(map[string]any{Key: v})
	if err != nil {
		return nil
	}
	return data
}

// Add returns somebody else's _meta in which the program says v, too, beside what is there. It replaces what is not an object.
func Add(meta json.RawMessage, v any) json.RawMessage {
	ours := Of(v)
	var all, said, more map[string]json.RawMessage
	if len(meta) == 0 || json.Unmarshal(meta, &all) != nil || all == nil || !Read(ours, &more) {
		return ours
	}
	if json.Unmarshal(all[Key], &said) != nil || said == nil {
		said = more
	}
	maps.Copy(said, more)
	all[Key], _ = json.Marshal(said)
	data, err := json.Marshal(all)
	if err != nil {
		return ours
	}
	return data
}

// Read decodes into v what the program says in _meta. It reports whether there is something, and all of it could be decoded;
// otherwise v may have a part of it.
func Read(meta json.RawMessage, v any) bool {
	var all map[string]json.RawMessage
	return json.Unmarshal(meta, &all) == nil && len(all[Key]) > 0 && json.Unmarshal(all[Key], v) == nil
}

// Rank is what a gateway says with a prompt: what its sender is in the session, one of "viewer", "prompter", "approver"
// and "owner". An agent without such a client is its user's alone.
type Rank struct {
	Rank string `json:"rank,omitempty"`
}

// Ranks is what an agent says in its answer to initialize that asks about everything that a sender wants who may not
// approve, whatever its mode is.
type Ranks struct {
	Ranks bool `json:"ranks,omitempty"`
}

// Unanswered is what the built-in agent says of a text that stands for an answer: there is no language model that could
// have given one.
type Unanswered struct {
	Unanswered bool `json:"unanswered,omitempty"`
}

// Empty is what the built-in agent says of a text that stands for an answer: the model has given none.
type Empty struct {
	Empty bool `json:"empty,omitempty"`
}

// Ranked is what an agent says of a command that not everybody may use: the least rank.
type Ranked struct {
	Role string `json:"role,omitempty"`
}
