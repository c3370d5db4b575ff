package engine

import (
	"encoding/hex"
	"strings"
	"testing"
	"time"
)

// TestSum: the hash of a record is what it was in all versions, and no field can be changed, nor can
// bytes move from one field to another, without changing it.
func TestSum(t *testing.T) {
	base := Record{Seq: 2, Epoch: 3, Time: time.Unix(4, 5), Kind: "kind", Data: []byte("data")}
	sum := base.sum([32]byte{1}, "session")
	const want = "4e03aff854dd1f03eabaf793c87b6c0b6fc513ec8cf3532841ebbd78573d10e2"
	if got := hex.EncodeToString(sum[:]); got != want {
		t.Errorf("the hash is %s, want %s: logs that exist cannot be read", got, want)
	}
	seen := map[[32]byte]string{sum: "the record"}
	for name, f := range map[string]func(*Record) (prev byte, session string){
		"previous hash":   func(*Record) (byte, string) { return 2, "session" },
		"session":         func(*Record) (byte, string) { return 1, "Session" },
		"number":          func(r *Record) (byte, string) { r.Seq++; return 1, "session" },
		"epoch":           func(r *Record) (byte, string) { r.Epoch++; return 1, "session" },
		"time":            func(r *Record) (byte, string) { r.Time = r.Time.Add(1); return 1, "session" },
		"kind":            func(r *Record) (byte, string) { r.Kind = "Kind"; return 1, "session" },
		"data":            func(r *Record) (byte, string) { r.Data = []byte("dat"); return 1, "session" },
		"kind to data":    func(r *Record) (byte, string) { r.Kind, r.Data = "kin", []byte("ddata"); return 1, "session" },
		"data to kind":    func(r *Record) (byte, string) { r.Kind, r.Data = "kindd", []byte("ata"); return 1, "session" },
		"kind to session": func(r *Record) (byte, string) { r.Kind = "ind"; return 1, "sessionk" },
	} {
		r := base
		prev, session := f(&r)
		sum := r.sum([32]byte{prev}, session)
		if same, ok := seen[sum]; ok {
			t.Errorf("%s: the hash is that of %s", name, same)
		}
		seen[sum] = name
	}
	utc := base
	utc.Time = base.Time.In(time.FixedZone("x", 3600))
	if utc.sum([32]byte{1}, "session") != sum {
		t.Error("the time zone changes the hash")
	}
}

func FuzzCursor(f *testing.F) {
	for _, s := range []string{"", "?", "AAAAAAAAAAA", encodeCursor(Position{time.Unix(1, 2), "s/ü"}), encodeCursor(Position{time.Unix(1, 2), "\x00"}), strings.Repeat("A", 2000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := decodeCursor(s)
		switch {
		case err != nil:
			if (p != Position{}) {
				t.Errorf("an error, and %v", p)
			}
		case s != "":
			if again := encodeCursor(p); again != s || p.ID == "" {
				t.Errorf("%q is %v, which is written %q", s, p, again)
			}
		}
	})
}
