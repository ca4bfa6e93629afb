module pequod.io/standin

go 1.26.0
