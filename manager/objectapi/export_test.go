package objectapi

// SetPageBytes sets the bound of a page's objects.
func (s *Server) SetPageBytes(n int) { s.pageBytes = n }
