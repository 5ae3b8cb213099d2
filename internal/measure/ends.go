package measure

import "time"

// ends says when visits ended, in few cells: what was read of servers and clients a moment late is shared among the
// visits of the same time, and not among those that should have been counted.
type ends struct {
	from, cell time.Duration
	counts     [400]int64
}

// newEnds is ready for visits that end in the measurement, or a third of its length later.
func newEnds(from, to time.Duration) ends {
	return ends{from: from, cell: max(4*(to-from)/3/time.Duration(len(ends{}.counts)), 1)}
}

// add counts a visit that ended when the measurement had begun. Ends that come too late for the cells count in the
// last.
func (e *ends) add(at time.Duration) {
	e.counts[min(int64((at-e.from)/e.cell), int64(len(e.counts)-1))]++
}

// Between is how many visits came out well between two moments of the measurement; in a part of a cell there are as
// many as its share.
func (m *Meter) Between(from, to time.Duration) (n float64) {
	for i, count := range m.ends.counts {
		begin := m.ends.from + time.Duration(i)*m.ends.cell
		if inside := min(to, begin+m.ends.cell) - max(from, begin); inside > 0 {
			n += float64(count) * float64(inside) / float64(m.ends.cell)
		}
	}
	return n
}
