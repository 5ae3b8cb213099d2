package history

// Index finds operations by ID: it has a place for each, which is 0 until one is given to it. IDs are nearly dense in
// every lane, so it is an array for each lane.
type Index []numbers // by lane

// numbers are the places of a lane's operations, by their number from first on.
type numbers struct {
	first  uint64
	places []int32
}

// Spans are the first and the last number of the operations of each lane.
type Spans []Span

// Span is that of one lane; of one without operations it is zero.
type Span struct{ First, Last uint64 }

// Add takes an operation's ID in, which has a lane and a number.
func (s *Spans) Add(id ID) {
	lane, n := id.Lane(), id.Number()
	for lane >= len(*s) {
		*s = append(*s, Span{})
	}
	if l := &(*s)[lane]; l.Last == 0 {
		*l = Span{n, n}
	} else {
		l.First, l.Last = min(l.First, n), max(l.Last, n)
	}
}

// Index makes an index for all IDs within the spans.
func (s Spans) Index(space *Space) Index {
	x, all := make(Index, len(s)), uint64(0)
	for _, l := range s {
		all += l.size()
	}
	places := Make[int32](space, int(all))
	for lane, l := range s {
		x[lane], places = numbers{l.First, places[:l.size():l.size()]}, places[l.size():]
	}
	return x
}

func (s Span) size() uint64 {
	if s.Last == 0 {
		return 0
	}
	return s.Last - s.First + 1
}

// Place is the place for an ID, nil if none is within the spans.
func (x Index) Place(id ID) *int32 {
	lane := id.Lane()
	if lane < 0 || lane >= len(x) {
		return nil
	}
	l := &x[lane]
	n := id.Number() - l.first // wraps to a large number if it is less
	if n >= uint64(len(l.places)) {
		return nil
	}
	return &l.places[n]
}

// Find is what stands at the place of an ID, 0 without one.
func (x Index) Find(id ID) int32 {
	if place := x.Place(id); place != nil {
		return *place
	}
	return 0
}
