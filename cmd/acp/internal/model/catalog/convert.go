package catalog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A source is a provider in the data of charm.land/catwalk.
type source struct {
	ID     string `json:"id"`
	Models []struct {
		ID      string   `json:"id"`
		Name    string   `json:"name"`
		In      float64  `json:"cost_per_1m_in"`
		Out     float64  `json:"cost_per_1m_out"`
		Write   float64  `json:"cost_per_1m_in_cached"`
		Read    float64  `json:"cost_per_1m_out_cached"`
		Context int      `json:"context_window"`
		Output  int      `json:"default_max_tokens"`
		Levels  []string `json:"reasoning_levels"`
		Reasons bool     `json:"can_reason"`
		Images  bool     `json:"supports_attachments"`
	} `json:"models"`
}

// Convert makes a catalogue of the data of charm.land/catwalk, a list of providers, and
// counts its models. Providers that package catalog does not know are left out.
func Convert(data []byte, from string, at time.Time) (made []byte, models int, err error) {
	var all []source
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, 0, fmt.Errorf("this is no list of providers: %w", err)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\"source\":%q,\"licence\":\"MIT, see models.LICENSE\",\"date\":%q,\"providers\":{", from, at.UTC().Format(time.DateOnly))
	first := true
	for _, p := range Providers() {
		i := slices.IndexFunc(all, func(s source) bool { return s.ID == p.Name })
		if i < 0 {
			continue
		}
		if !first {
			b.WriteByte(',')
		}
		first = false
		fmt.Fprintf(&b, "\n%q:[", p.Name)
		var known []Known
		for _, m := range all[i].Models {
			known = append(known, Known{m.ID, m.Name, m.Context, m.Output, m.Images, m.Reasons, m.Levels, [4]float64{m.In, m.Out, m.Read, m.Write}})
		}
		slices.SortFunc(known, func(a, b Known) int { return cmp.Compare(a.ID, b.ID) })
		for j, k := range known {
			line, err := json.Marshal(k)
			if err != nil {
				return nil, 0, err
			}
			if j > 0 {
				b.WriteByte(',')
			}
			b.WriteByte('\n')
			b.Write(line)
			models++
		}
		b.WriteString("\n]")
	}
	b.WriteString("\n}}\n")
	if models == 0 {
		return nil, 0, errors.New("it has no model of a provider that is known")
	}
	return b.Bytes(), models, nil
}
