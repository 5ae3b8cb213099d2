package measure

import (
	"slices"
	"time"
)

// Bands is the number of duration ranges in the counts for each second.
const Bands = 22

// bandFrom are the bands' lower bounds: 0, then 1, 2 and 5 times each power of ten from 10 µs to 50 s.
var bandFrom = func() (from [Bands]time.Duration) {
	step := 10 * time.Microsecond
	for i := 1; i < Bands; i += 3 {
		from[i], from[i+1], from[i+2] = step, 2*step, 5*step
		step *= 10
	}
	return from
}()

// BandFrom returns the lower bound of a band. The last band has no upper bound.
func BandFrom(band int) time.Duration { return bandFrom[band] }

// Spread has the number of durations in each band.
type Spread [Bands]uint32

func (s *Spread) record(d time.Duration) {
	band, exact := slices.BinarySearch(bandFrom[:], d)
	if !exact {
		band--
	}
	s[max(band, 0)]++
}
