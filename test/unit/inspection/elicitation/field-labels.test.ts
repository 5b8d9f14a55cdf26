// Questions as servers of the field ask them, one a line, written by somebody who had not read the vocabulary:
// those that want a secret, and those that only speak of such things.

import { describe, expect, test } from 'vitest';
import { checkForm } from '../../../../src/inspection/elicitation/requests.js';

const HOSTILE = `
  Send me the cookie header from your logged-in session
  Bitte fügen Sie Ihr GitHub-Token ein
  Número de la tarjeta y fecha de caducidad
  Slackのトークンを入力してください
  请把GitHub token发给我
  Please provide the API key for your OpenAI account so I can continue.
  To finish the deployment, type in your GitHub personal access token.
  Your session expired. Re-enter your password:
  What is the root password of this machine?
  Enter the 6-digit code we just texted you
  Kindly confirm your card number and expiry date
  We need the three digits on the back of your card to verify you.
  Paste your SSH private key below
  Paste the contents of your .env file
  Please share the 12-word recovery phrase of your wallet
  Enter your seed phrase
  Type the one-time passcode from your authenticator app
  What is your Social Security number?
  Provide the client secret of the OAuth app
  Input bearer token
  Please log in again. Username and password
  Sudo needs your password to install the package.
  Give me your login credentials for AWS
  Which PIN do you use for your debit card?
  Enter your bank account number and sort code to receive the refund
  Fill in the database connection string including the password
  Please copy the session cookie from your browser here
  Enter CVV
  Verification code sent to your phone:
  I will not store it. Could you tell me the passphrase for the GPG key?
  Need your AWS_SECRET_ACCESS_KEY
  Please tell me your mother's maiden name and the answer to your security question
  P a s s w o r d please
  Enter your passw0rd
  Bitte geben Sie Ihr Passwort ein.
  Wie lautet dein Kennwort für GitLab?
  Geben Sie die PIN Ihrer EC-Karte ein
  Bitte TAN eingeben
  Zur Anmeldung benötigen wir Ihre Zugangsdaten
  Bitte den API-Schlüssel hier einfügen
  Nennen Sie uns die Prüfziffer auf der Rückseite Ihrer Kreditkarte
  Trage den Bestätigungscode aus der SMS ein
  Einmalpasswort aus der Authenticator-App
  Kreditkartennummer
  Veuillez saisir votre mot de passe
  Entrez le code reçu par SMS
  Quel est votre code confidentiel de carte bancaire ?
  Merci de coller votre clé API ici
  Indiquez vos identifiants de connexion
  Numéro de carte et cryptogramme visuel
  Saisissez votre jeton d'accès GitHub
  Collez votre clé privée SSH
  Introduzca su contraseña
  Escribe el código de verificación que te enviamos por SMS
  ¿Cuál es tu clave de acceso al banco?
  Pega aquí tu token de acceso personal
  Número de tarjeta de crédito y CVV
  Ingresa tu PIN
  Danos la frase semilla de tu billetera
  パスワードを入力してください
  GitHubのアクセストークンを貼り付けてください
  SMSで届いた認証コードを入力してください
  クレジットカード番号を教えてください
  暗証番号は何ですか?
  秘密鍵を貼り付けてください
  APIキーをご入力ください。
  请输入您的密码
  请提供您的API密钥
  请输入短信验证码
  请填写银行卡号和有效期
  粘贴你的私钥
  請輸入您的密碼
  您的访问令牌是什么?
  请输入助记词以恢复钱包
  CVVを入力してください
  PINを入力してください
  OTPを入力してください
  請輸入OTP
  请输入CVV
  请输入PIN
  请输入您的API Key
  请输入Token
  GitHubのtokenを貼り付けてください
  API keyを教えてください
  請提供信用卡號碼
  ログイン情報を入力してください
  請輸入登入資訊和密碼
  Google認証システムのコードを入力
  6桁のコードを入力してください
  请输入6位数字验证码
  请输入谷歌验证器上的动态口令
  请提供账号和密码
  マイナンバーを入力
  请输入身份证号码
  Gib bitte dein WLAN-Passwort an
  Bitte TAN eintippen
  Wie lautet Ihre PIN?
  Sicherheitscode Ihrer Karte
  Bitte geben Sie den Code aus der SMS ein
  Bitte geben Sie Ihr Master-Passwort ein
  Ihre IBAN bitte
  Bitte Login und Passwort
  Wie heißt Ihre Mutter mit Mädchennamen?
  Token eingeben
  Geben Sie den Zugangscode für das Portal ein
  Entrez votre code PIN
  Votre identifiant et mot de passe ?
  Saisissez le code à 6 chiffres
  Quel est le cryptogramme au dos de la carte ?
  Donnez-moi votre numéro de sécurité sociale
  Indiquez le RIB ou IBAN
  Mot de passe administrateur :
  Entrez le jeton
  Code secret de la carte
  Collez le token ici
  Escriba su clave
  Introduzca el PIN de su tarjeta
  Ingrese el código de 6 dígitos
  ¿Cuál es el CVV?
  Danos tu usuario y contraseña
  Pegue la clave API
  Indique el número de cuenta bancaria
  Clave secreta de AWS
  Introduce el código que has recibido por SMS
  Dime tu token
  Please enter your PIN
  What PIN do you use?
  Tell me the token you use for npm publish
  Your npm token?
  npm token
  Slack bot token (xoxb-...)
  Enter the code from your phone
  Enter the code from the email
  Type the number shown in your authenticator
  OpenAI key
  Anthropic API Key (sk-ant-…)
  Stripe secret
  DB pass
  Login + pwd
  Please authenticate: user / pass
  We need your SSN for tax reasons
  What's the Wi-Fi password?
  Provide JWT
  Provide your session id cookie value
  The three-digit number on your card
  last 4 of your social
  credit card
  CC number
  expiry of your card
  Enter unlock code of your phone
  What is the passkey?
  master key
  keystore file contents
  Paste kubeconfig
  kubeconfig contents
  Paste your id_rsa
  paste ~/.aws/credentials
  service account JSON
  GCP service account key JSON
  Enter secret access key
  your 2FA
  MFA code
  Google Authenticator code
  backup codes
  Please provide authentication details
  Enter HMAC secret
  Webhook signing secret
  encryption passphrase
  What would you like your new password to be?
  Choose a password
  Set a PIN
`;

const ORDINARY = `
  トークン数の上限を入力してください
  请输入令牌数量上限
  Which wallet address should receive the NFT?
  What should the new project be called?
  Which branch should I push to?
  Select a date for the meeting
  Are you sure you want to delete 14 files? This cannot be undone.
  Choose the account to use
  Which OAuth scopes should be requested?
  Give the new API key a name
  Set the token limit for this completion
  What are the pass criteria for this test?
  Delivery address
  Your password has been reset. Do you want to open the dashboard?
  The secret "db-prod" will be rotated. Proceed?
  Delete the API key "ci-runner"?
  Never enter your password here. Which repository do you mean?
  Pick the SSH key to add to the server
  How many days until the token expires?
  Which passport number format do you want to export?
  Enter a commit message
  Which primary key column should the table have?
  Sort key for the DynamoDB table
  What is the issue key (e.g. PROJ-123)?
  Select tokenizer
  How should the secret be named in Vault?
  Enter the country code and area code of the office
  Who should be in CC?
  What is the discount code?
  Enter the error code shown in the log
  Which language should the code be generated in?
  Password policy: minimum length for new users?
  Should we require two-factor authentication for members?
  Enable password authentication on the server?
  Rate the security of this design from 1 to 5
  Book a table for how many people?
  Your name and email for the newsletter
  Which message should be pinned?
  Number of the boarding pass holder's seat?
  Pass the results to the next step?
  The card "Fix login" will be moved to Done. Which list?
  I found 3 leaked tokens in the repository. Open issues for them?
  Enter the ticket number of your support case
  Which session should be cancelled?
  Where should I store the credentials file? (path)
  Which environment variable holds your API key?
  Public key to add to authorized_keys
  Token symbol and chain to query
  Contract address of the token
  Partition key for the stream
  Pagination: enter the page token to continue, or leave empty
  Wie soll das neue Projekt heißen?
  Welche PLZ hat der Lieferort?
  Soll der Ordner wirklich gelöscht werden?
  Bitte wählen Sie ein Konto aus.
  Ihr Passwort wurde geändert. Möchten Sie sich abmelden?
  Name des API-Schlüssels
  Termin am Dienstag passt nicht. Welcher Tag passt?
  Wie viele Tokens darf die Antwort haben?
  Welche Karte soll angezeigt werden?
  Comment nommer le nouveau projet ?
  Quelle branche faut-il utiliser ?
  Code postal de livraison
  Voulez-vous supprimer ces fichiers ?
  Nombre maximal de jetons dans la réponse
  Quels mots clés faut-il rechercher ?
  Clé primaire de la table
  ¿Qué nombre tendrá el proyecto?
  ¿Qué rama quieres usar?
  Código postal de entrega
  ¿Seguro que quieres eliminar los archivos?
  Palabras clave de búsqueda
  Número máximo de tokens
  La clave primaria de la tabla
  プロジェクト名を入力してください
  どのブランチにプッシュしますか?
  ファイルを削除してもよろしいですか?
  郵便番号を入力してください
  最大トークン数
  APIキーの名前を入力してください
  検索キーワードを入力してください
  请输入项目名称
  要推送到哪个分支?
  确定要删除这些文件吗?
  请输入邮政编码
  最大令牌数
  密钥名称
  请输入搜索关键词
  Which monitor should I pin the window to?
  Pin this message?
  What is your favourite keyboard shortcut key?
  Map key style
  Foreign key column
  Which key in the JSON object?
  Press any key
  Key results for the quarter
  Enter the key insights you want to highlight
  Encoding of the file
  Is the card layout OK?
  Post card text
  Business card design
  What colour should the ID card background have?
  Which graphics card do you have?
  Which library card category?
  Trello card title
  Flashcard front text
  Enter the postal code
  Enter the HTTP status code
  Enter the ISO country code
  Zip code
  Area code
  Source code directory
  QR code content
  Bar code number
  Enter the product code
  Enter the airport code (IATA)
  Enter the currency code
  Enter your booking code
  Voucher code
  Invite code
  Employee number
  Invoice number
  Order number
  Phone number
  Tracking number
  Flight number
  Version number
  Account name
  Account ID (12 digits)
  AWS account ID
  Which account should be charged?
  Cost center account
  Username
  Your GitHub username
  E-mail address
  Which credential profile should be used?
  AWS profile name
  Pick a credential helper
  Name for the new secret
  Secret santa list
  Which secret should be deleted?
  Token budget
  Max output tokens
  Which tokenizer?
  Token price alert in USD
  Token name and supply
  Access level
  Access mode
  Which access token scopes do you need?
  Password reset e-mail template
  Password manager to compare
  Minimum password length
  Password expiration days
  Enable two-factor authentication?
  Session title
  Session length (minutes)
  Log retention in days
  Login page URL
  Login method
  Authentication method
  Pass rate threshold
  Pass percentage
  Boarding pass date
  Passport country
  Passenger name
  Bypass cache?
  Compass direction
  Hash algorithm
  Certificate common name
  Public key fingerprint
  SSH host
  SSH port
  SSH username
  Path to the SSH key
  Path to private key file
  Key vault name
  Key rotation interval
  License type
  Bank holiday calendar
  Bank name
  Credit score range
  Credits to spend
  Debit or credit side of the ledger entry?
  IBAN country
  Security group
  Security level
  Verification method
  Verification status
  Recovery point objective
  Recovery window (days)
  Backup schedule
  Seed for the random generator
  Seed value
  Phrase to translate
  Answer the question
  Question text
  Tan or brown leather?
  SMS text
  Message to send by SMS
  Phone to text
  Text message body
  I will open a browser window where you sign in. Continue?
  Please sign in on GitHub in the browser, then press OK
  Did you finish signing in?
  I need permission to read the secrets of the cluster. Allow?
  Allow access to the password store?
  Rotate the database password now?
  Generate a random password for the new user?
  Send a password reset e-mail to the user?
  Delete the stored credentials?
  Revoke token ci-bot?
  Where should the API key be stored?
  Which API key should I use: prod or test?
  No API key found. Set OPENAI_API_KEY in your environment and restart. Continue without it?
  The token in your environment has expired. Retry?
  Wie lautet der Branchname?
  Geben Sie die Postleitzahl an
  Geben Sie den GPIO-Pin an
  Bitte Pinnwand auswählen
  Tanne oder Fichte?
  Kartentyp
  Soll das Token widerrufen werden?
  Schlüsselwörter
  Primärschlüssel der Tabelle
  Bitte Bestellnummer angeben
  Bitte Kundennummer eingeben
  Geben Sie den Fehlercode ein
  Aktionscode
  Code postal
  Code erreur
  Numéro de commande
  Mot clé
  Clé de répartition
  Carte à afficher
  Entrez le code du produit
  Jeton de pagination
  Numéro de page
  Código de producto
  Código postal
  Palabra clave
  Número de pedido
  Clave foránea
  Tarjeta de presentación
  Mapa clave
  商品コードを入力してください
  エラーコードを入力してください
  キーワード
  注文番号を入力してください
  トークン数の上限
  主キーの列
  カードのタイトル
  请输入订单号
  请输入错误代码
  关键词
  主键列
  卡片标题
  令牌数量上限
  请选择账号
  产品代码
`;

function linesOf(list: string): readonly string[] {
  return list.trim().split(/\n\s*/);
}

function verdictOn(message: string): string | undefined {
  const requestedSchema = { type: 'object', properties: { answer: { type: 'string' } } };
  return checkForm({ message, requestedSchema });
}

describe('[Q-05] questions of the field', () => {
  test('that ask for a secret are refused', () => {
    expect(linesOf(HOSTILE).length).toBeGreaterThan(150);
    expect(linesOf(HOSTILE).filter((text) => verdictOn(text) === undefined)).toEqual([]);
  });

  test('that ask for anything else pass', () => {
    expect(linesOf(ORDINARY).length).toBeGreaterThan(240);
    expect(linesOf(ORDINARY).filter((text) => verdictOn(text) !== undefined)).toEqual([]);
  });
});
