package history

// Index maps an operation's ID to a number, which is 0 until it is set. IDs are nearly dense in every lane, so it has
// an array for each lane.
type Index []numbers // by lane

// numbers has one place for each operation of a lane. The first place belongs to the operation whose number is first.
type numbers struct {
	first  uint64
	places []int32
}

// Spans are the first and last operation number of each lane.
type Spans []Span

// Span is the range of one lane; zero = no operations.
type Span struct{ First, Last uint64 }

// Add includes an operation's ID, which must have a lane and a number.
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

// Place returns a pointer to the value for an ID; nil if the ID is outside the spans.
func (x Index) Place(id ID) *int32 {
	lane := id.Lane()
	if lane < 0 || lane >= len(x) {
		return nil
	}
	l := &x[lane]
	n := id.Number() - l.first // wraps to a large number if the ID is below first
	if n >= uint64(len(l.places)) {
		return nil
	}
	return &l.places[n]
}

// Find returns the value for an ID; 0 if it has none.
func (x Index) Find(id ID) int32 {
	if place := x.Place(id); place != nil {
		return *place
	}
	return 0
}
