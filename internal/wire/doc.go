// Package wire is the run-time support of the generated protocol codecs and of
// the JSON-RPC envelope: a pull decoder over a byte slice and append-style
// encoding. It knows JSON and nothing of JSON-RPC or ACP.
//
// The decoder is strict about JSON itself and forgiving about its content.
// Text that is not JSON (bad syntax, raw control bytes in strings, nesting
// beyond [MaxDepth], trailing bytes) is a [SyntaxError] and ends decoding. A
// value of the wrong shape is a mismatch: the value is skipped, the first
// mismatch is remembered for [Decoder.Finish], and decoding continues, so that a
// field which the schema marks lenient can reset itself and carry on. Keys are
// compared exactly and a repeated known key is a mismatch.
//
// Invalid UTF-8 and lone surrogate escapes become U+FFFD in decoded strings,
// as they do in the official SDKs, and are counted. Raw values are kept byte
// for byte, except that invalid UTF-8 is replaced and line breaks between
// tokens become spaces: a raw value can never end a frame early.
//
// Long strings are looked at in blocks of 64 bytes: see markBlocks. Messages of
// a stream that differ in their text only are read in full once: see [Forms].
package wire

// MaxDepth is the deepest nesting of objects and arrays that is decoded.
const MaxDepth = 512

// aliasMin is the length in bytes from which strings and raw values of an
// owned input alias it instead of being copied.
const aliasMin = 1024
