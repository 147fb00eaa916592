"""What a Fetch needs beside its handler: sessions, file ranges of the response, the preferred replica."""
