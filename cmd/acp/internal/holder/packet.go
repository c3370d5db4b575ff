package holder

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A kind says what a packet is. Some kinds mean one thing in each direction.
type kind byte

const (
	kindHello   kind = 'H'
	kindFrame   kind = 'F'
	kindAck     kind = 'A'
	kindRenew   kind = 'R'
	kindStderr  kind = 'E'
	kindStop    kind = 'S'
	kindWelcome kind = 'W'
	kindRefused kind = 'X'
	kindLong    kind = 'L'
	kindExit    kind = 'Q'
	kindWritten kind = 'D'
	kindClosed  kind = 'C'
	kindTaken   kind = 'T'
	kindGone    kind = 'G'
)

const (
	headBytes    = 5
	numberBytes  = 8
	maxControl   = 4 << 10             // data of a packet that has no bound of its own
	longPrefix   = 64 << 10            // kept of a line that is too long, as package jsonrpc does
	stderrBytes  = 64 << 10            // kept of standard error
	exitStderr   = 16 << 10            // of which this is part of the exit status
	maxExit      = 8*exitStderr + 1024 // as JSON
	maxStderr    = 2 * stderrBytes
	readAtOnce   = 64 << 10 // what a length is believed without having seen the bytes
	writeBuffer  = 16 << 10
	packetBuffer = 16 << 10
)

// numbered reports whether packets of this kind begin with a number.
func (k kind) numbered() bool {
	switch k {
	case kindFrame, kindAck, kindRenew, kindStop, kindLong, kindExit, kindWritten:
		return true
	}
	return false
}

// limit returns the most data that a packet of this kind may have, and whether there is such a kind.
func (k kind) limit(maxFrame int) (int, bool) {
	switch k {
	case kindHello, kindWelcome, kindRefused, kindClosed:
		return maxControl, true
	case kindAck, kindRenew, kindStop, kindWritten, kindTaken:
		return 0, true
	case kindFrame:
		return maxFrame, true
	case kindLong:
		return numberBytes + longPrefix, true
	case kindExit, kindGone:
		return maxExit, true
	case kindStderr:
		return maxStderr, true
	}
	return 0, false
}

// A packet is what both sides send. Kinds that have no number have 0.
type packet struct {
	kind   kind
	number uint64
	data   []byte
}

// errPacket is wrapped by the error of a packet that breaks the rules of the wire.
var errPacket = errors.New("not a packet of a holder")

// readPacket reads a packet. Its data has room for one more byte. The memory it takes grows with
// what has arrived, not with the length that the packet claims. At the end between two packets the
// error is io.EOF, and io.ErrUnexpectedEOF within one.
func readPacket(r *bufio.Reader, maxFrame int) (p packet, err error) {
	var head [headBytes + numberBytes]byte
	if _, err := io.ReadFull(r, head[:headBytes]); err != nil {
		return p, err
	}
	p.kind = kind(head[0])
	length := int64(binary.BigEndian.Uint32(head[1:headBytes]))
	limit, ok := p.kind.limit(maxFrame)
	if !ok {
		return p, fmt.Errorf("%w: kind %#x", errPacket, head[0])
	}
	if p.kind.numbered() {
		if length < numberBytes {
			return p, fmt.Errorf("%w: kind %q without a number", errPacket, head[0])
		}
		if _, err := io.ReadFull(r, head[headBytes:]); err != nil {
			return p, unexpected(err)
		}
		p.number = binary.BigEndian.Uint64(head[headBytes:])
		length -= numberBytes
	}
	if length > int64(limit) {
		return p, fmt.Errorf("%w: kind %q with %d bytes", errPacket, head[0], length)
	}
	if length == 0 {
		return p, nil
	}
	p.data, err = readData(r, int(length))
	return p, unexpected(err)
}

// readData reads n bytes, and makes room for one more.
func readData(r io.Reader, n int) ([]byte, error) {
	data := make([]byte, 0, min(n, readAtOnce)+1)
	for len(data) < n {
		if cap(data) == len(data)+1 && len(data) > 0 {
			grown := make([]byte, len(data), min(n, 2*len(data))+1)
			copy(grown, data)
			data = grown
		}
		part := data[len(data):min(n, cap(data)-1)]
		if _, err := io.ReadFull(r, part); err != nil {
			return nil, err
		}
		data = data[:len(data)+len(part)]
	}
	return data, nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// writePacket writes a packet. Large data is not copied.
func writePacket(w *bufio.Writer, p packet) error {
	var head [headBytes + numberBytes]byte
	n, length := headBytes, len(p.data)
	if p.kind.numbered() {
		binary.BigEndian.PutUint64(head[headBytes:], p.number)
		n += numberBytes
		length += numberBytes
	}
	head[0] = byte(p.kind)
	binary.BigEndian.PutUint32(head[1:], uint32(length)) // every limit is below that
	if _, err := w.Write(head[:n]); err != nil {
		return err
	}
	_, err := w.Write(p.data)
	return err
}
