module eldest.dev/eldest

go 1.19
