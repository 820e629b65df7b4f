"""E-mail: messages by SMTP, and answers and requests from an IMAP mailbox."""
