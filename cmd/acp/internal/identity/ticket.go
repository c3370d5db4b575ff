package identity

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"
)

// Bounds of pairing.
const (
	// TicketLifetime is how long a ticket can be redeemed.
	TicketLifetime = 2 * time.Minute
	// MaxTickets bounds the tickets that can be redeemed at the same time.
	MaxTickets = 4
	// MaxTries is how many wrong codes there may be, whoever sends them. Then the code is void: a device needs the ticket
	// itself. After as many that come with the ticket it is dead.
	MaxTries = 5
	// MaxLinks bounds the tickets of [Store.NewLink], and MaxLinkLifetime how long each can be redeemed.
	MaxLinks        = 4
	MaxLinkLifetime = time.Hour
	// maxRecent bounds the tickets of the last two minutes, whatever has happened to them.
	maxRecent = 64
)

// ticketPrefix begins a ticket. It is another one than that of a credential, so neither is taken for the
// other.
const ticketPrefix = "acpt_"

// A TicketState says what has happened to a ticket.
type TicketState string

// The states. A ticket that has expired or was cancelled is not found.
const (
	TicketOpen     TicketState = "open"
	TicketClaimed  TicketState = "claimed"  // a device has sent it, without the code
	TicketApproved TicketState = "approved" // and may have its credential
	TicketDenied   TicketState = "denied"
	TicketDead     TicketState = "dead"     // after too many wrong codes
	TicketRedeemed TicketState = "redeemed" // there is a device
	TicketLink     TicketState = "link"     // whoever has it gets a device
)

// A Ticket lets one device become a user's. Ticket and Code are known to its maker only: the store keeps
// hashes.
type Ticket struct {
	ID      string
	Ticket  string // for the device, with approval or together with the code
	Code    string // six digits, which a person types
	Expires time.Time
}

// NewTicket makes a ticket for a device of that name, or of the name that the device gives itself if
// name is "". The error wraps [ErrName] if there is a device of that name, and [ErrTooMany] if there are
// [MaxTickets].
func (s *Store) NewTicket(ctx context.Context, name string, g Grant) (t Ticket, err error) {
	if err := g.Check(name); err != nil {
		return Ticket{}, err
	}
	scope, err := json.Marshal(g.Scope)
	if err != nil {
		return Ticket{}, err
	}
	n, err := rand.Int(rand.Reader, big.NewInt(1_000_000))
	if err != nil {
		return Ticket{}, err
	}
	secret, hash := newSecret()
	now := time.Now()
	t = Ticket{ID: randomText(idBytes), Code: fmt.Sprintf("%06d", n), Expires: now.Add(TicketLifetime).UTC()}
	t.Ticket = join(ticketPrefix, t.ID, secret)
	err = s.change(ctx, func(tx *sql.Tx) error {
		if err := errors.Join(expireTickets(ctx, tx, now), expireDevices(ctx, tx, now)); err != nil {
			return err
		}
		var live, all, same, devices int
		err := tx.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM ticket WHERE state IN ('open', 'claimed', 'approved')), (SELECT count(*) FROM ticket), (SELECT count(*) FROM device WHERE name = ?), (SELECT count(*) FROM device)`, name).
			Scan(&live, &all, &same, &devices)
		switch {
		case err != nil:
			return storeError(err)
		case same > 0:
			return fmt.Errorf("%w: %s", ErrName, name)
		case live >= MaxTickets || all >= maxRecent:
			return fmt.Errorf("%w tickets: wait until one has expired", ErrTooMany)
		case devices >= MaxDevices:
			return fmt.Errorf("%w devices: there are %d; revoke some", ErrTooMany, devices)
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO ticket VALUES (?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?, x'', '', '', '')`,
			t.ID, hash, codeHash(t.ID, t.Code), g.User, name, g.Role.String(), string(scope), int64(g.Lifetime), nanos(t.Expires), string(TicketOpen))
		if err != nil {
			return storeError(err)
		}
		if err := bound(ctx, tx, g.By, new(time.Time)); err != nil {
			return err
		}
		return made(ctx, tx, t.ID, g.By)
	})
	if err != nil {
		return Ticket{}, err
	}
	return t, nil
}

// NewLink makes a ticket whose device gets its credential at once: nobody is asked, and there is no code. It is for a
// link that only the user sees. It can be redeemed for a time, once. If there are [MaxLinks] the oldest one ends.
func (s *Store) NewLink(ctx context.Context, g Grant, valid time.Duration) (t Ticket, err error) {
	if err := g.check(); err != nil {
		return Ticket{}, err
	}
	if valid <= 0 || valid > MaxLinkLifetime {
		return Ticket{}, fmt.Errorf("a link is valid for up to %v", MaxLinkLifetime)
	}
	scope, err := json.Marshal(g.Scope)
	if err != nil {
		return Ticket{}, err
	}
	secret, hash := newSecret()
	now := time.Now()
	t = Ticket{ID: randomText(idBytes), Expires: now.Add(valid).UTC()}
	t.Ticket = join(ticketPrefix, t.ID, secret)
	err = s.change(ctx, func(tx *sql.Tx) error {
		if err := expireTickets(ctx, tx, now); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM ticket WHERE id IN (SELECT id FROM ticket WHERE state = 'link' OR state = 'redeemed' AND length(code) = 0 ORDER BY expires DESC LIMIT -1 OFFSET ?)`, MaxLinks-1); err != nil {
			return storeError(err)
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO ticket VALUES (?, ?, x'', 0, ?, '', ?, ?, ?, ?, ?, x'', '', '', '')`,
			t.ID, hash, g.User, g.Role.String(), string(scope), int64(g.Lifetime), nanos(t.Expires), string(TicketLink))
		return storeError(err)
	})
	if err != nil {
		return Ticket{}, err
	}
	return t, nil
}

// expireTickets removes those whose time has passed; so there are never many.
func expireTickets(ctx context.Context, tx *sql.Tx, now time.Time) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM ticket WHERE expires <= ?`, now.UnixNano())
	return storeError(err)
}

func codeHash(id, code string) []byte {
	sum := sha256.Sum256([]byte(id + " " + code))
	return sum[:]
}

// A Claim is what a device sends to redeem a ticket: the code, the ticket, or both.
type Claim struct {
	Ticket string
	Code   string
	// Secret is chosen by the device, at random. A ticket without a code is given to the claimant that
	// repeats it, so nobody else gets what was approved. At most 128 bytes.
	Secret string
	// Name is what the device calls itself, and Address where it is; both are shown to who approves.
	Name, Address string
}

// maxClaim bounds each field of a claim, in bytes.
const maxClaim = 128

// ticketRow is a ticket as it is stored.
type ticketRow struct {
	id, user, name, role, scope, state string
	hash, code, claim                  []byte
	tries                              int
	lifetime                           int64
}

// Redeem gives a device its credential. With the code that is done at once. With the ticket alone it is
// done if [Store.Approve] was called for the same claim, and otherwise the error wraps [ErrWaiting]: the
// device asks again. Any other error about the claim wraps [ErrTicket], [ErrDenied], [ErrName] or
// [ErrTooMany].
//
// A wrong code counts against the ticket that comes with it or, without a ticket, against the codes of all there are:
// however many addresses try, there are [MaxTries] guesses in all at each. A ticket, which nobody guesses, outlives its code.
//
// A claim that is repeated, with the same Secret, gets a credential again as long as the first one was not used: the answer
// may have been lost.
func (s *Store) Redeem(ctx context.Context, c Claim) (d Device, credential string, err error) {
	if len(c.Ticket) > maxClaim || len(c.Code) > maxClaim || len(c.Secret) > maxClaim {
		return Device{}, "", ErrTicket
	}
	var said error // with the transaction committed, since wrong codes are counted
	err = s.change(ctx, func(tx *sql.Tx) error {
		if err := errors.Join(expireTickets(ctx, tx, time.Now()), expireDevices(ctx, tx, time.Now())); err != nil {
			return err
		}
		list, err := liveTickets(ctx, tx)
		if err != nil {
			return err
		}
		if d, credential, err = again(ctx, tx, c); err != nil || credential != "" {
			return err
		}
		row, err := choose(ctx, tx, list, c)
		if isSaid(err) {
			said = err
			return nil
		} else if err != nil {
			return err
		}
		d, credential, err = redeem(ctx, tx, row, c)
		return err
	})
	if err == nil {
		err = said
	}
	return d, credential, err
}

func isSaid(err error) bool {
	return errors.Is(err, ErrTicket) || errors.Is(err, ErrWaiting) || errors.Is(err, ErrDenied)
}

func liveTickets(ctx context.Context, tx *sql.Tx) (list []ticketRow, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT id, hash, code, tries, user, name, role, scope, lifetime, state, claim FROM ticket WHERE state IN ('open', 'claimed', 'approved', 'denied', 'link')`)
	if err != nil {
		return nil, storeError(err)
	}
	defer rows.Close()
	for rows.Next() {
		var r ticketRow
		if err := rows.Scan(&r.id, &r.hash, &r.code, &r.tries, &r.user, &r.name, &r.role, &r.scope, &r.lifetime, &r.state, &r.claim); err != nil {
			return nil, storeError(err)
		}
		list = append(list, r)
	}
	return list, storeError(rows.Err())
}

// choose returns the ticket that a claim redeems now.
func choose(ctx context.Context, tx *sql.Tx, list []ticketRow, c Claim) (ticketRow, error) {
	if c.Ticket != "" {
		id, secret, ok := split(ticketPrefix, c.Ticket)
		var found []ticketRow
		for _, r := range list {
			if ok && r.id == id && subtle.ConstantTimeCompare(r.hash, hashOf(secret)) == 1 {
				found = append(found, r)
			}
		}
		if len(found) == 0 {
			return ticketRow{}, ErrTicket
		}
		if found[0].state == string(TicketLink) {
			return found[0], nil
		}
		if c.Code == "" {
			return found[0], claim(ctx, tx, found[0], c)
		}
		list = found
	}
	list = slices.DeleteFunc(list, func(r ticketRow) bool { return r.state == string(TicketLink) }) // it has no code
	match := -1
	for i, r := range list {
		if c.Ticket == "" && r.tries%withTicket >= MaxTries {
			continue // the code is void
		}
		if r.state != string(TicketDenied) && subtle.ConstantTimeCompare(r.code, codeHash(r.id, c.Code)) == 1 {
			match = i
		}
	}
	if match >= 0 {
		return list[match], nil
	}
	for _, r := range list {
		state, more := r.state, 1
		switch {
		case c.Ticket != "":
			if more = withTicket; r.tries/withTicket+1 >= MaxTries {
				state = string(TicketDead)
			}
		case r.tries%withTicket >= MaxTries:
			continue // its code is void already
		}
		if _, err := tx.ExecContext(ctx, `UPDATE ticket SET tries = tries + ?, state = ? WHERE id = ?`, more, state, r.id); err != nil {
			return ticketRow{}, storeError(err)
		}
	}
	return ticketRow{}, ErrTicket
}

// withTicket is what a wrong code adds to the tries of the ticket that came with it; one without a ticket adds 1.
const withTicket = 1000

// claim returns nil if a claim without a code was approved.
func claim(ctx context.Context, tx *sql.Tx, r ticketRow, c Claim) error {
	if len(c.Secret) < minSecret {
		return ErrTicket
	}
	sum := hashOf(c.Secret)
	switch same := subtle.ConstantTimeCompare(r.claim, sum) == 1; {
	case r.state == string(TicketOpen):
		_, err := tx.ExecContext(ctx, `UPDATE ticket SET state = ?, claim = ?, claimant = ?, address = ? WHERE id = ?`,
			string(TicketClaimed), sum, cleanName(c.Name), c.Address[:min(len(c.Address), maxClaim)], r.id)
		return errors.Join(ErrWaiting, storeError(err))
	case !same:
		return ErrTicket
	case r.state == string(TicketApproved):
		return nil
	case r.state == string(TicketDenied):
		return ErrDenied
	}
	return ErrWaiting
}

// redeem adds the device of a ticket.
func redeem(ctx context.Context, tx *sql.Tx, r ticketRow, c Claim) (Device, string, error) {
	g := Grant{User: r.user, Lifetime: time.Duration(r.lifetime)}
	var err error
	if g.Role, err = ParseRole(r.role); err == nil {
		err = json.Unmarshal([]byte(r.scope), &g.Scope)
	}
	if err != nil {
		return Device{}, "", fmt.Errorf("%w: a ticket: %w", ErrStore, err)
	}
	if g.By, err = maker(ctx, tx, r.id); err != nil {
		return Device{}, "", err
	}
	name := r.name
	if name == "" {
		if name, err = freeName(ctx, tx, cleanName(c.Name)); err != nil {
			return Device{}, "", err
		}
	}
	d, credential, err := addDevice(ctx, tx, name, g)
	if err != nil {
		return Device{}, "", err
	}
	sum := append([]byte{}, r.claim...)
	if len(c.Secret) >= minSecret {
		sum = hashOf(c.Secret)
	}
	_, err = tx.ExecContext(ctx, `UPDATE ticket SET state = ?, device = ?, claim = ? WHERE id = ?`, string(TicketRedeemed), d.ID, sum, r.id)
	return d, credential, storeError(err)
}

// minSecret is how long the secret of a claimant has to be at least, in bytes.
const minSecret = 16

// again returns a new credential of a device that was made for the same claim and has never been used: its first one may have been
// lost on the way. It returns "" if there is none.
func again(ctx context.Context, tx *sql.Tx, c Claim) (Device, string, error) {
	if len(c.Secret) < minSecret {
		return Device{}, "", nil
	}
	var id, ticket string
	var hash, code []byte
	err := tx.QueryRowContext(ctx, `SELECT ticket.id, ticket.hash, code, device.id FROM ticket JOIN device ON device.id = device
		WHERE state = 'redeemed' AND claim = ? AND used = 0`, hashOf(c.Secret)).Scan(&ticket, &hash, &code, &id)
	if errors.Is(err, sql.ErrNoRows) {
		return Device{}, "", nil
	} else if err != nil {
		return Device{}, "", storeError(err)
	}
	if c.Ticket != "" {
		of, secret, ok := split(ticketPrefix, c.Ticket)
		if !ok || of != ticket || subtle.ConstantTimeCompare(hash, hashOf(secret)) != 1 {
			return Device{}, "", nil
		}
	} else if subtle.ConstantTimeCompare(code, codeHash(ticket, c.Code)) != 1 {
		return Device{}, "", nil
	}
	secret, sum := newSecret()
	if _, err := tx.ExecContext(ctx, `UPDATE device SET hash = ? WHERE id = ?`, sum, id); err != nil {
		return Device{}, "", storeError(err)
	}
	d, err := scanDevice(tx.QueryRowContext(ctx, `SELECT `+deviceColumns+` FROM device WHERE id = ?`, id).Scan)
	return d, join(credentialPrefix, id, secret), storeError(err)
}

// freeName returns a name that no device has: the one that is wanted, or that with a number.
func freeName(ctx context.Context, tx *sql.Tx, want string) (string, error) {
	if want == "" {
		want = "device"
	}
	name := want
	for n := 2; n <= MaxDevices+1; n++ { // one of them is free
		var same int
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM device WHERE name = ?`, name).Scan(&same); err != nil || same == 0 {
			return name, storeError(err)
		}
		name = fmt.Sprintf("%s-%d", want, n)
	}
	return "", fmt.Errorf("%w: %s", ErrName, want)
}

// Progress is what has happened to a ticket.
type Progress struct {
	State TicketState
	Tries int  // wrong codes
	Void  bool // there were too many of them without a ticket: the code is not accepted any more unless the ticket comes with it
	// Name is what a device that has claimed the ticket calls itself, or "", and Address where it is.
	// Either may be a lie.
	Name, Address string
	Device        string // the id of the device, once there is one
}

// Progress returns what has happened to a ticket. The error wraps [ErrNotFound] if it has expired or was
// cancelled.
func (s *Store) Progress(ctx context.Context, id string) (p Progress, err error) {
	if err := s.present(); err != nil {
		return Progress{}, err
	}
	err = s.db.QueryRowContext(ctx, `SELECT state, tries, claimant, address, device FROM ticket WHERE id = ? AND (expires > ? OR state = 'redeemed')`, id, time.Now().UnixNano()).
		Scan(&p.State, &p.Tries, &p.Name, &p.Address, &p.Device)
	p.Void = p.Tries%withTicket >= MaxTries
	p.Tries = p.Tries%withTicket + p.Tries/withTicket
	if errors.Is(err, sql.ErrNoRows) {
		return Progress{}, fmt.Errorf("ticket: %w", ErrNotFound)
	}
	return p, storeError(err)
}

// Approve lets the device that has claimed a ticket redeem it. The error wraps [ErrNotFound] if nobody
// has claimed it, or if it has expired.
func (s *Store) Approve(ctx context.Context, id string) error {
	return s.decide(ctx, id, TicketApproved)
}

// Deny ends a ticket that was claimed. Its errors are those of [Store.Approve].
func (s *Store) Deny(ctx context.Context, id string) error { return s.decide(ctx, id, TicketDenied) }

func (s *Store) decide(ctx context.Context, id string, state TicketState) error {
	return s.change(ctx, func(tx *sql.Tx) error {
		r, err := tx.ExecContext(ctx, `UPDATE ticket SET state = ? WHERE id = ? AND state = 'claimed' AND expires > ?`, string(state), id, time.Now().UnixNano())
		if err != nil {
			return storeError(err)
		}
		if n, err := r.RowsAffected(); err != nil || n == 0 {
			return errors.Join(fmt.Errorf("claimed ticket: %w", ErrNotFound), err)
		}
		return nil
	})
}

// Cancel removes a ticket. It is not an error if there is none.
func (s *Store) Cancel(ctx context.Context, id string) error {
	return s.change(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM ticket WHERE id = ?`, id)
		return storeError(err)
	})
}

// An Endpoint is where a gateway is reached.
type Endpoint struct {
	URL string `json:"url"`
	// Fingerprint is the SHA-256 of the certificate, in hexadecimal digits, if the gateway has made it
	// itself; or "".
	Fingerprint string `json:"fingerprint,omitempty"`
	// Page says that there is a page for browsers.
	Page bool `json:"page,omitempty"`
}

// PageURL returns where the page for browsers is, or "" if there is none.
func (e Endpoint) PageURL() string {
	u, err := pairURL(e.URL)
	if !e.Page || err != nil {
		return ""
	}
	u.Path = "/"
	return u.String()
}

// Announce leaves where the gateway is reached, for commands that pair devices.
func (s *Store) Announce(ctx context.Context, e Endpoint) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return s.change(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO setting VALUES ('endpoint', ?) ON CONFLICT DO UPDATE SET value = excluded.value`, string(text))
		return storeError(err)
	})
}

// Endpoint returns what [Store.Announce] has left, or the zero value.
func (s *Store) Endpoint(ctx context.Context) (e Endpoint, err error) {
	if err := s.present(); err != nil {
		return Endpoint{}, err
	}
	var text string
	err = s.db.QueryRowContext(ctx, `SELECT value FROM setting WHERE key = 'endpoint'`).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return Endpoint{}, nil
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &e)
	}
	return e, storeError(err)
}
