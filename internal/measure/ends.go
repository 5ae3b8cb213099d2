package measure

import "time"

// The type ends counts the visits that ended in each slot of time. Readings of server counters come a little late. To
// get the cost of one visit, a reading is divided by the number of visits that had ended at the time of the reading.
type ends struct {
	from, cell time.Duration
	counts     [400]int64
}

// newEnds makes slots that cover the measurement, and a third of its length more for late readings.
func newEnds(from, to time.Duration) ends {
	return ends{from: from, cell: max(4*(to-from)/3/time.Duration(len(ends{}.counts)), 1)}
}

// add counts a visit that ended at the given time. A visit after all slots counts in the last.
func (e *ends) add(at time.Duration) {
	e.counts[min(int64((at-e.from)/e.cell), int64(len(e.counts)-1))]++
}

// Between returns how many counted visits ended between two times. If a slot lies only partly between them, a
// proportional part of its visits counts.
func (m *Meter) Between(from, to time.Duration) (n float64) {
	for i, count := range m.ends.counts {
		begin := m.ends.from + time.Duration(i)*m.ends.cell
		if inside := min(to, begin+m.ends.cell) - max(from, begin); inside > 0 {
			n += float64(count) * float64(inside) / float64(m.ends.cell)
		}
	}
	return n
}
