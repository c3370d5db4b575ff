package push

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// MaxBody bounds the body of a [Message], in bytes.
const MaxBody = 2048

const (
	saltBytes  = 16
	keyBytes   = 16
	nonceBytes = 12
	// padded is the length of all bodies once they are encrypted, so that it says nothing about them. With its header
	// a message is well below the 4096 bytes that each push service takes.
	padded     = MaxBody + 1
	recordSize = 4096
)

// check returns why nothing can be encrypted for a subscription, or nil.
func (s *Subscription) check() error {
	if len(s.Public) != publicBytes || len(s.Auth) != authBytes {
		return fmt.Errorf("%w: p256dh has %d bytes and auth %d", ErrRefused, publicBytes, authBytes)
	}
	if _, err := ecdh.P256().NewPublicKey(s.Public); err != nil {
		return fmt.Errorf("%w: p256dh is no point of P-256", ErrRefused)
	}
	return nil
}

// encrypt encrypts a body so that the browser alone can read it: RFC 8291, with the coding aes128gcm of RFC 8188 in one
// record.
func encrypt(s *Subscription, body []byte) ([]byte, error) {
	if len(body) > MaxBody {
		return nil, fmt.Errorf("a message of %d bytes is too long: %d are the most", len(body), MaxBody)
	}
	own, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt) // never fails
	return seal(s, own, salt, body, padded)
}

// seal encrypts a body with a key and a salt that are used once, padded to a length.
func seal(s *Subscription, own *ecdh.PrivateKey, salt, body []byte, length int) ([]byte, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	theirs, err := ecdh.P256().NewPublicKey(s.Public)
	if err != nil {
		return nil, err
	}
	shared, err := own.ECDH(theirs)
	if err != nil {
		return nil, err
	}
	mine := own.PublicKey().Bytes()
	material, err := hkdf.Key(sha256.New, shared, s.Auth, "WebPush: info\x00"+string(s.Public)+string(mine), sha256.Size)
	if err != nil {
		return nil, err
	}
	key, err := hkdf.Key(sha256.New, material, salt, "Content-Encoding: aes128gcm\x00", keyBytes)
	if err != nil {
		return nil, err
	}
	nonce, err := hkdf.Key(sha256.New, material, salt, "Content-Encoding: nonce\x00", nonceBytes)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	plain := append(append(make([]byte, 0, length), body...), 2) // the delimiter of the last record
	plain = append(plain, make([]byte, max(0, length-len(plain)))...)
	out := append([]byte(nil), salt...)
	out = binary.BigEndian.AppendUint32(out, recordSize)
	out = append(append(out, byte(len(mine))), mine...)
	return aead.Seal(out, nonce, plain, nil), nil
}
