package measure

import (
	"slices"
	"time"
)

// Bands is the number of ranges of durations in a Spread.
const Bands = 22

// bandFrom has the lower bound of each band: 0, then 10 µs, 20 µs, 50 µs, 100 µs and so on, up to 50 s.
var bandFrom = func() (from [Bands]time.Duration) {
	step := 10 * time.Microsecond
	for i := 1; i < Bands; i += 3 {
		from[i], from[i+1], from[i+2] = step, 2*step, 5*step
		step *= 10
	}
	return from
}()

// BandFrom returns the lower bound of a band. Its upper bound is the lower bound of the next band; the last band has
// none.
func BandFrom(band int) time.Duration { return bandFrom[band] }

// Spread is a small histogram: the number of durations in each band.
type Spread [Bands]uint32

func (s *Spread) record(d time.Duration) {
	band, exact := slices.BinarySearch(bandFrom[:], d)
	if !exact {
		band--
	}
	s[max(band, 0)]++
}
