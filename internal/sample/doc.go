// Package sample makes and judges JSON values of a protocol schema for tests.
//
// From one schema document it produces random valid values, breaks them in ways that
// respect the schema, says whether a value is valid, computes what a reader with the
// schema's leniency keeps of a value, and brings values into a normal form in which two
// values are equal exactly when the schema gives them the same meaning.
//
// It is a second, independent reading of the schema: it interprets the document at run
// time and shares no code with the generated decoders, so the two can be held against
// each other. It is used by tests only and is not tuned for speed.
package sample
