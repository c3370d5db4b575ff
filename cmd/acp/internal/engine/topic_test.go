package engine

import (
	"errors"
	"fmt"
	"testing"
)

// numbered returns records with numbers from first to last, with data of so many bytes.
func numbered(first, last uint64, size int) (recs []Record) {
	for seq := first; seq <= last; seq++ {
		recs = append(recs, Record{Seq: seq, Data: make([]byte, size)})
	}
	return recs
}

// wants takes what a follower at a record gets, and compares the numbers.
func wants(t *testing.T, topic *topic, f *follower, at uint64, want string) {
	t.Helper()
	recs, lagged, err := topic.take(f, at)
	got := ""
	for _, r := range recs {
		got += fmt.Sprint(r.Seq, " ")
	}
	if lagged {
		got += "lagged"
	}
	if err != nil {
		got += err.Error()
	}
	if got != want {
		t.Errorf("after record %d: %q, want %q", at, got, want)
	}
}

// holds compares what a topic holds.
func holds(t *testing.T, topic *topic, batches, records, size int) {
	t.Helper()
	if len(topic.batches) != batches || topic.records != records || topic.size != size {
		t.Errorf("%d batches with %d records of %d bytes, want %d, %d, %d", len(topic.batches), topic.records, topic.size, batches, records, size)
	}
}

// TestTopic: batches are held once for all followers, until each has taken them or has left.
func TestTopic(t *testing.T) {
	topic := &topic{followers: map[*follower]struct{}{}}
	one, two, gone := newFollower(), newFollower(), newFollower()
	topic.add(one)
	topic.add(two)
	topic.add(gone)
	topic.put(numbered(1, 2, 10))
	topic.put(numbered(2, 3, 10)) // overlaps
	topic.put(numbered(1, 3, 10)) // came before
	holds(t, topic, 2, 3, 3*138)
	wants(t, topic, one, 1, "2 ") // it has read 1 in the log
	wants(t, topic, one, 2, "3 ")
	wants(t, topic, one, 3, "")
	late := newFollower()
	topic.add(late)
	wants(t, topic, late, 0, "lagged")
	wants(t, topic, two, 3, "") // it has read all of them in the log
	holds(t, topic, 2, 3, 3*138)
	topic.remove(gone)
	holds(t, topic, 0, 0, 0)
	topic.put(append(numbered(4, 5, 0), numbered(8, 8, 0)...)) // 6 and 7 are missing
	wants(t, topic, one, 3, "4 5 ")
	wants(t, topic, one, 5, "lagged")
	wants(t, topic, one, 7, "8 ")
	topic.miss()
	wants(t, topic, one, 8, "lagged")
	wants(t, topic, one, 8, "")
	topic.fail(errors.New("over"))
	wants(t, topic, one, 8, "over")
	if topic.remove(one) || topic.remove(two) || !topic.remove(late) {
		t.Error("it is not empty when the last one has left")
	}
	holds(t, topic, 0, 0, 0)
}

// TestTopicBounds: what is held for a follower that takes nothing is bounded, and it continues with what is there.
func TestTopicBounds(t *testing.T) {
	for _, test := range []struct {
		name                   string
		size, each             int // of a record, and records of a batch
		batches, records, most int
	}{
		{"records", 1, 256, topicRecords / 256, topicRecords, topicBytes},
		{"bytes", 64 << 10, 16, 3, 48, topicBytes},
		{"large", topicBytes + 1, 1, 1, 1, topicBytes + 129},
	} {
		t.Run(test.name, func(t *testing.T) {
			topic := &topic{followers: map[*follower]struct{}{}}
			f := newFollower()
			topic.add(f)
			seq := uint64(0)
			for range 100 {
				topic.put(numbered(seq+1, seq+uint64(test.each), test.size))
				seq += uint64(test.each)
			}
			if len(topic.batches) != test.batches || topic.records != test.records || topic.size > test.most {
				t.Errorf("%d batches with %d records of %d bytes are held", len(topic.batches), topic.records, topic.size)
			}
			wants(t, topic, f, 0, "lagged")
			from := seq - uint64(topic.records)
			if topic.has(f, from-1) || !topic.has(f, from) {
				t.Errorf("a follower should need the log up to record %d, and not longer", from)
			}
			n := uint64(0)
			for n < seq-from {
				recs, lagged, err := topic.take(f, from+n)
				if len(recs) == 0 || lagged || err != nil {
					t.Fatalf("after record %d: %d records, %t, %v", from+n, len(recs), lagged, err)
				}
				n += uint64(len(recs))
			}
			holds(t, topic, 0, 0, 0)
		})
	}
}
