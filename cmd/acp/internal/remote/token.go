// Package remote reaches agents over the network: it knows their URLs, finds the token that a server
// wants, and explains why a server cannot be used.
//
// A token is never part of a URL, and is sent over an unencrypted connection to another machine only
// if the user insists.
package remote

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/zalando/go-keyring"
)

// EnvToken is the environment variable with the token, for servers and for clients.
const EnvToken = "ACP_TOKEN"

// maxToken bounds a token, in bytes.
const maxToken = 4 << 10

// A Source says where a token is. At most one of File, Env and Keyring may be set; without one the
// token is that of [EnvToken], if that is set. The zero value is ready for use.
type Source struct {
	File    string // a file that has nothing but the token
	Env     string // an environment variable
	Keyring string // SERVICE/USER in the keyring of the system
	// Lookup finds environment variables; nil means those of this process.
	Lookup func(name string) (string, bool)
}

// Named reports whether the source names a place of its own.
func (s Source) Named() bool { return s.File != "" || s.Env != "" || s.Keyring != "" }

// Token returns the token, or "" if there is none. It is an error if a place that is named has none.
func (s Source) Token() (string, error) {
	lookup := s.Lookup
	if lookup == nil {
		lookup = os.LookupEnv
	}
	named := 0
	for _, place := range []string{s.File, s.Env, s.Keyring} {
		if place != "" {
			named++
		}
	}
	switch {
	case named > 1:
		return "", errors.New("the token can come from one place only: a file, a variable or the keyring")
	case s.File != "":
		return readToken(s.File)
	case s.Keyring != "":
		return keyringToken(s.Keyring)
	}
	name := s.Env
	if name == "" {
		name = EnvToken
	}
	text, _ := lookup(name)
	switch text = strings.TrimSpace(text); {
	case text == "" && s.Env != "":
		return "", fmt.Errorf("the variable %s, which has the token, is not set", name)
	case text == "":
		return "", nil
	}
	return checked(text, "the variable "+name)
}

// keyringToken reads a token from the keyring.
func keyringToken(place string) (string, error) {
	service, user, ok := strings.Cut(place, "/")
	if !ok || service == "" || user == "" {
		return "", fmt.Errorf("the place of a token in the keyring is SERVICE/USER, not %q", place)
	}
	text, err := keyring.Get(service, user)
	if err != nil {
		return "", fmt.Errorf("the token in the keyring, %s: %w", place, err)
	}
	return checked(strings.TrimSpace(text), "the keyring, "+place)
}

// readToken reads a token from a file.
func readToken(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("the token: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return "", fmt.Errorf("the token: %s is a directory", file)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxToken+2))
	if err != nil {
		return "", fmt.Errorf("the token: %w", err)
	}
	return checked(string(bytes.TrimSpace(text)), file)
}

// checked returns a token that can be sent, or an error that does not show it.
func checked(text, where string) (string, error) {
	switch {
	case text == "":
		return "", fmt.Errorf("the token: %s is empty", where)
	case len(text) > maxToken:
		return "", fmt.Errorf("the token: %s has more than %d bytes", where, maxToken)
	case strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' }):
		return "", fmt.Errorf("the token: %s has white space or characters that are not ASCII in it", where)
	}
	return text, nil
}

// LocalFile returns the file with the token of a server that listens at an address of this machine, in
// the state directory of its user. address is HOST:PORT, with an IP address as its host.
func LocalFile(state, address string) string {
	return filepath.Join(state, "serve", strings.NewReplacer(":", "_", "[", "", "]", "", "%", "_").Replace(address)+".token")
}

// NewLocal writes a new token into the file of [LocalFile], which only its owner can read, and returns
// both. The file replaces what an earlier server at the address has left.
func NewLocal(state, address string) (token, file string, err error) {
	if state == "" {
		return "", "", errors.New("there is no home directory for its token")
	}
	file = LocalFile(state, address)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", "", err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".token-") // with mode 0600
	if err != nil {
		return "", "", err
	}
	token = rand.Text()
	_, err = f.WriteString(token + "\n")
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return "", "", err
	}
	return token, file, nil
}

// localToken returns the token that a server of the user's own, at an address of this machine, has
// left in a file; "" if there is none.
func localToken(state string, u *url.URL) (string, error) {
	if state == "" {
		return "", nil
	}
	hosts := []string{u.Hostname()}
	if strings.EqualFold(u.Hostname(), "localhost") {
		hosts = []string{"127.0.0.1", "::1"}
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "ws": "80", "https": "443", "wss": "443"}[u.Scheme]
	}
	for _, host := range hosts {
		if ip, err := netip.ParseAddr(host); err == nil {
			host = ip.String()
		}
		token, err := readToken(LocalFile(state, net.JoinHostPort(host, port)))
		if err == nil || !errors.Is(err, os.ErrNotExist) {
			return token, err
		}
	}
	return "", nil
}

// isLoopback reports whether a host is this machine.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
