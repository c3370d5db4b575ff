package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"strings"
)

// A credential is "acp_", the public id of its device, "_" and the secret. The prefix lets programs that
// look for secrets find it.
const (
	credentialPrefix = "acp_"
	idBytes          = 10 // 80 bits: 16 characters
	secretBytes      = 32 // 256 bits: 52 characters
)

// letters is base32 in lower case: a credential survives a double click and being read aloud.
var letters = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

func randomText(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails
	return letters.EncodeToString(b)
}

// newSecret returns a random secret of 256 bits with its hash. A plain hash is enough at that length:
// nobody can try secrets.
func newSecret() (secret string, hash []byte) {
	secret = randomText(secretBytes)
	return secret, hashOf(secret)
}

func hashOf(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// join returns a credential or a ticket.
func join(prefix, id, secret string) string { return prefix + id + "_" + secret }

// split returns the public id and the secret of what join has returned.
func split(prefix, text string) (id, secret string, ok bool) {
	rest, ok := strings.CutPrefix(text, prefix)
	if !ok {
		return "", "", false
	}
	id, secret, ok = strings.Cut(rest, "_")
	ok = ok && len(id) == letters.EncodedLen(idBytes) && len(secret) == letters.EncodedLen(secretBytes)
	return id, secret, ok
}

// IsCredential reports whether a token has the form of a device's credential. It may be wrong
// nevertheless.
func IsCredential(token string) bool {
	_, _, ok := split(credentialPrefix, token)
	return ok
}
