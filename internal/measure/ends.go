package measure

import "time"

// ends counts the ends of visits in a few time slots. Readings of servers and clients come a moment late; each is
// divided by the visits up to that same moment.
type ends struct {
	from, cell time.Duration
	counts     [400]int64
}

// newEnds covers the measurement and a third of its length more.
func newEnds(from, to time.Duration) ends {
	return ends{from: from, cell: max(4*(to-from)/3/time.Duration(len(ends{}.counts)), 1)}
}

// add counts the end of a visit. An end after the last slot counts in the last slot.
func (e *ends) add(at time.Duration) {
	e.counts[min(int64((at-e.from)/e.cell), int64(len(e.counts)-1))]++
}

// Between is the number of counted visits that ended between two moments; a slot contributes in proportion.
func (m *Meter) Between(from, to time.Duration) (n float64) {
	for i, count := range m.ends.counts {
		begin := m.ends.from + time.Duration(i)*m.ends.cell
		if inside := min(to, begin+m.ends.cell) - max(from, begin); inside > 0 {
			n += float64(count) * float64(inside) / float64(m.ends.cell)
		}
	}
	return n
}
