// Package acpv2 holds the wire types, codecs and methods of the draft of version 2 of
// the Agent Client Protocol. It has no behaviour: package jsonrpc carries the
// messages, and what an agent or a client does with them is the caller's.
//
// # Reading and writing
//
// Each method is a value: call it with its Call or Notify method and register a
// handler with its Handle method.
//
//	res, err := acpv2.MethodSessionPrompt.Call(ctx, conn, &acpv2.PromptRequest{
//		SessionID: id,
//		Prompt:    []acpv2.ContentBlock{acpv2.Text("hello")},
//	})
//
// All types also implement json.Marshaler and json.Unmarshaler with the same
// result; for a union there is an Unmarshal function, such as
// [UnmarshalContentBlock]. encoding/json escapes <, > and & in what it marshals
// unless configured otherwise. And null, which it takes for "leave it", is an error here
// where the protocol does not allow it. Values may be read and encoded by several
// goroutines at once, and changed by one that has them to itself.
//
// Encoding refuses what a peer would have to refuse: a required union without a
// value, a list that must not be empty, a member among the unknown ones that is
// known. The error names the member.
//
// # Unions and enums
//
// A union is an interface; its variants are pointers to structs, read with a
// type switch. The discriminator alone decides; the few unions without one are
// distinguished by the member that only one variant has. What has a discriminator
// this package does not know becomes the union's Unknown variant, which keeps it
// byte for byte; a known discriminator with a malformed payload is an error. Enums
// are strings with constants (error codes are integers); values that are not among
// them are kept.
//
// # Absence
//
// Optional members are omitted when their Go value is zero. Where a zero value
// has a meaning the field is a pointer: new(uint32(7)) makes one. Slices and maps
// are omitted when they are nil and sent when they are merely empty; required ones are always
// sent. Explicit null is read as absence, except in raw JSON, which keeps it, and in
// [Patch] fields, which have three states because the protocol gives null a meaning
// there.
//
// # What is kept
//
// Members that the schema does not know are in the field Unknown, in their order,
// and are sent again after the known ones. _meta, rawInput, rawOutput and the data
// of errors stay raw JSON: the spelling of numbers and the order of keys survive.
// Line breaks between tokens of raw JSON become spaces and invalid UTF-8 becomes
// U+FFFD, so that raw JSON can never break the framing.
//
// # Strictness
//
// Names are compared exactly; a known name that occurs twice, a missing required member
// and a value of the wrong type are errors that name the member by its path and
// never hold its value. The schema marks members that must not fail a whole
// message: those are reset to absent, and items of marked lists are
// dropped. An integer may be spelled 1.0 or 1e2 but not 1.5.
//
// What only the unstable schema has is marked Experimental; see [Experimental].
package acpv2
