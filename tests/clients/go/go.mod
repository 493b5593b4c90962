module inlay.test/client

go 1.19
