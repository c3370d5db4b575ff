package trace

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/safetext"
)

// line makes text safe to print on one line of a terminal.
func line(s string) string { return safetext.Line(s, 4096) }

// printJSON prints v as a line of JSON that is safe for a terminal.
func printJSON(w io.Writer, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(safetext.JSON(data), '\n'))
	return err
}

// size returns a number of bytes in at most six cells.
func size(n int64) string {
	if n < 1000 {
		return strconv.FormatInt(n, 10) + " B"
	}
	f := float64(n)
	for _, unit := range []string{"kB", "MB", "GB", "TB"} {
		f /= 1000
		switch {
		case f < 9.95:
			return fmt.Sprintf("%.1f %s", f, unit)
		case f < 999.5:
			return fmt.Sprintf("%.0f %s", f, unit)
		}
	}
	return "huge"
}

// span returns a duration in at most seven cells.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "-"
	case d < 10*time.Microsecond:
		return fmt.Sprintf("%.1f µs", float64(d)/1e3)
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Round(time.Microsecond)/time.Microsecond)
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/1e6)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond)/time.Millisecond)
	case d < 10*time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// seconds is a duration that is a number of seconds in JSON.
type seconds time.Duration

// MarshalJSON returns the seconds with all significant digits.
func (s seconds) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, time.Duration(s).Seconds(), 'f', -1, 64), nil
}
