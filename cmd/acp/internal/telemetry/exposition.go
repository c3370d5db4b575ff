package telemetry

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// contentType is that of a [page]: the text format of Prometheus, in the version that every scraper takes.
const contentType = "text/plain; version=0.0.4; charset=utf-8"

// A family is a counter or a histogram, with a series for each combination of values that its labels have had. It may
// be used from any goroutine. Callers bound how many values there are.
type family struct {
	labels  []string
	buckets []float64 // the upper bounds of a histogram, ascending; nil for a counter

	mu     sync.Mutex
	series map[string]*series // by their values, which are UTF-8, with a byte between them that never is
}

// A series is what was counted for some values of labels.
type series struct {
	values []string
	sum    float64  // of a counter, what it has counted
	counts []uint64 // of a histogram, for each bucket and for what is beyond all of them
}

// of returns the series with some values, which begins with this call if it is new. f must be locked.
func (f *family) of(values []string) *series {
	key := strings.Join(values, "\xff")
	s := f.series[key]
	if s == nil {
		s = &series{values: values}
		if f.buckets != nil {
			s.counts = make([]uint64, len(f.buckets)+1)
		}
		if f.series == nil {
			f.series = map[string]*series{}
		}
		f.series[key] = s
	}
	return s
}

// begin begins a series, with 0.
func (f *family) begin(values ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of(values)
}

// add adds to a counter.
func (f *family) add(n float64, values ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of(values).sum += n
}

// observe adds a value to a histogram. NaN is left out: the sum would stay NaN.
func (f *family) observe(v float64, values ...string) {
	if math.IsNaN(v) {
		return
	}
	bucket, _ := slices.BinarySearch(f.buckets, v)
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.of(values)
	s.sum += v
	s.counts[bucket]++
}

// write writes all series. A family that has none has no heading, either.
func (f *family) write(p *page, d Metric) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.series) == 0 {
		return
	}
	p.head(d)
	for _, key := range slices.Sorted(maps.Keys(f.series)) {
		s := f.series[key]
		if f.buckets == nil {
			p.line(d.Name, f.labels, s.values, s.sum)
			continue
		}
		labels, total := append(slices.Clip(f.labels), "le"), uint64(0)
		for i, n := range s.counts {
			bound := math.Inf(1)
			if i < len(f.buckets) {
				bound = f.buckets[i]
			}
			total += n // a bucket has what is in those before it, too
			p.line(d.Name+"_bucket", labels, append(slices.Clip(s.values), number(bound)), float64(total))
		}
		p.line(d.Name+"_sum", f.labels, s.values, s.sum)
		p.line(d.Name+"_count", f.labels, s.values, float64(total))
	}
}

// A page is metrics in the text format of Prometheus, version 0.0.4:
// https://prometheus.io/docs/instrumenting/exposition_formats/.
type page struct{ text []byte }

var (
	helpEscapes  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	valueEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

// head writes what goes before the lines of a metric.
func (p *page) head(d Metric) {
	p.text = append(p.text, "# HELP "+d.Name+" "+helpEscapes.Replace(d.Help)+"\n# TYPE "+d.Name+" "+d.Type+"\n"...)
}

// line writes a value. There are as many values of labels as there are labels.
func (p *page) line(name string, labels, values []string, v float64) {
	p.text = append(p.text, name...)
	for i, label := range labels {
		before := byte(',')
		if i == 0 {
			before = '{'
		}
		p.text = append(p.text, before)
		p.text = append(p.text, label+`="`+valueEscapes.Replace(values[i])+`"`...)
	}
	if len(labels) > 0 {
		p.text = append(p.text, '}')
	}
	p.text = append(p.text, " "+number(v)+"\n"...)
}

// one writes a metric that has one value.
func (p *page) one(name, kind, help string, v float64) {
	p.head(Metric{Name: name, Type: kind, Help: help})
	p.line(name, nil, nil, v)
}

// number formats a value.
func number(v float64) string {
	return strconv.FormatFloat(v, 'g', -1, 64)
}
