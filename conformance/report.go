package conformance

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
)

// A Report is what a check found.
type Report struct {
	Side Side
	// Name and Release are how the peer introduced itself, or "".
	Name, Release string
	// Versions are those of the protocol that the peer speaks, of those checked.
	Versions []int
	// Transports are those that a server serves: [OverHTTP], [OverWebSocket] or both.
	Transports []string
	// Broken says in a line why nothing could be checked, or is "".
	Broken string
	// Mute says in a line why rules were not tried, if the peer was given up since it
	// answered nothing behind initialize, or is "". They are [Broken] for that reason.
	Mute string
	// Cause is what Broken or Mute is about.
	Cause Cause
	// Interrupted says that the check was ended before all was tried, and Left how
	// many results are missing for that.
	Interrupted bool
	Left        int
	// Results are ordered by the id of the rule and the version. Rules that were
	// not chosen have none.
	Results []*Result
	Took    time.Duration
}

// A Cause is what kept a peer from being checked, for programs; [Report.Broken] and
// [Report.Mute] say it for people.
type Cause string

// Causes that a [Report] tells apart.
const (
	CauseOther  Cause = ""        // another, or nothing did
	CauseLate   Cause = "late"    // what was due did not come within [Options.Timeout], or the peer did not
	CauseNoPeer Cause = "no-peer" // what answers does not speak the protocol
)

// causeOf returns the cause that an error reports.
func causeOf(err error) Cause {
	if v, ok := errors.AsType[*verdict](err); ok && v.late || errors.Is(err, context.DeadlineExceeded) {
		return CauseLate
	}
	return CauseOther
}

// Failed reports whether the peer is wrong: a rule of level must failed, nothing
// could be checked, or the peer was given up.
func (r *Report) Failed() bool {
	return r.Broken != "" || r.Mute != "" || slices.ContainsFunc(r.Results, func(x *Result) bool { return x.Rule.Level == Must && x.Status == Fail })
}

// Count returns how many results there are of a level and a status.
func (r *Report) Count(level Level, status Status) int {
	n := 0
	for _, x := range r.Results {
		if x.Rule.Level == level && x.Status == status {
			n++
		}
	}
	return n
}

// Result returns the result of a rule in a version, or nil.
func (r *Report) Result(id string, version int) *Result {
	for _, x := range r.Results {
		if x.Rule.ID == id && x.Version == version {
			return x
		}
	}
	return nil
}

// Join adds the results of another report of the same check, over another transport or
// about another side, with what it says was not tried.
func (r *Report) Join(other *Report, over string) {
	for _, res := range other.Results {
		res.Over = over
	}
	r.Results = append(r.Results, other.Results...)
	if why := cmp.Or(other.Broken, other.Mute); why != "" && r.Mute == "" {
		r.Mute, r.Cause = why, other.Cause
		if over != "" {
			r.Mute = "over " + over + ": " + why
		}
	}
	for _, v := range other.Versions {
		if !slices.Contains(r.Versions, v) {
			r.Versions = append(r.Versions, v)
		}
	}
	slices.Sort(r.Versions)
	r.Name, r.Release = cmp.Or(r.Name, other.Name), cmp.Or(r.Release, other.Release)
	r.Interrupted = r.Interrupted || other.Interrupted
	r.Left += other.Left
	r.Took += other.Took
	r.sort()
}

func (r *Report) sort() {
	slices.SortStableFunc(r.Results, func(a, b *Result) int {
		return cmp.Or(strings.Compare(a.Rule.ID, b.Rule.ID), cmp.Compare(a.Version, b.Version), strings.Compare(a.Over, b.Over))
	})
}

// The JSON form of a report. Members are only ever added.
type (
	reportJSON struct {
		Side     Side                     `json:"side"`
		Name     string                   `json:"name"`
		Release  string                   `json:"release"`
		Versions []int                    `json:"versions"`
		Over     []string                 `json:"transports,omitempty"`
		Failed   bool                     `json:"failed"`
		Broken   string                   `json:"broken,omitempty"`
		Mute     string                   `json:"mute,omitempty"`
		Stopped  bool                     `json:"interrupted,omitempty"`
		Left     int                      `json:"left,omitempty"`
		Counts   map[Level]map[Status]int `json:"counts"`
		Results  []*Result                `json:"results"`
		TookMS   int64                    `json:"tookMs"`
	}
	resultJSON struct {
		Over    string   `json:"over,omitempty"`
		Rule    string   `json:"rule"`
		Version int      `json:"version"`
		Level   Level    `json:"level"`
		Status  Status   `json:"status"`
		Why     string   `json:"why,omitempty"`
		Purpose string   `json:"purpose,omitempty"`
		First   string   `json:"first,omitempty"`
		Text    string   `json:"text"`
		Cites   []string `json:"cites"`
		Saw     []Seen   `json:"saw,omitempty"`
		TookMS  int64    `json:"tookMs"`
	}
)

// MarshalJSON encodes the report with its counts.
func (r *Report) MarshalJSON() ([]byte, error) {
	counts := map[Level]map[Status]int{}
	for _, l := range []Level{Must, Should, May, Quirk} {
		counts[l] = map[Status]int{}
		for _, s := range []Status{Pass, Fail, Skip, Unseen, Broken} {
			counts[l][s] = r.Count(l, s)
		}
	}
	return json.Marshal(reportJSON{
		Side: r.Side, Name: r.Name, Release: r.Release, Versions: append([]int{}, r.Versions...), Over: r.Transports, Failed: r.Failed(), Broken: r.Broken,
		Mute: r.Mute, Stopped: r.Interrupted, Left: r.Left,
		Counts: counts, Results: append([]*Result{}, r.Results...), TookMS: r.Took.Milliseconds(),
	})
}

// MarshalJSON encodes the result with what is needed to understand it alone.
func (r *Result) MarshalJSON() ([]byte, error) {
	return json.Marshal(resultJSON{
		Rule: r.Rule.ID, Version: r.Version, Over: r.Over, Level: r.Rule.Level, Status: r.Status, Why: r.Why, Purpose: r.Purpose, First: r.First,
		Text: r.Rule.Text, Cites: r.Rule.Cites, Saw: r.Saw, TookMS: r.Took.Milliseconds(),
	})
}

// MarshalJSON encodes the frame with who sent it.
func (s Seen) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Out  bool   `json:"out"`
		Data string `json:"data"`
	}{s.Out, s.Data})
}
